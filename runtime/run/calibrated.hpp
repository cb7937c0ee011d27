// Replaces a scenario's device and network by a calibrated profile of the machine that runs it.
#pragma once

#include <string>

#include "costmodel/scenario/scenario.hpp"

namespace runtime {

// Replaces the cluster's device by the profile; by a cluster's profile also the tiers. Also removes
// the overheads of the training framework, because the times were measured with this runtime; of
// the overlaps those remain that this runtime has: transfers between stages always, and reduced
// gradients and replayed launches (CUDA graphs) where the scenario asks for them. Throws
// ConfigError when the file is missing, was not written by `shardplan calibrate`, or has no rate in
// `computed_in`, the precision that the run computes in.
void use_calibrated(costmodel::Scenario& scenario, const std::string& profile,
                    const costmodel::ConfigPath& path, costmodel::Precision computed_in);

}  // namespace runtime
