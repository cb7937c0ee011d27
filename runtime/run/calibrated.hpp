// Replaces a scenario's device and network by a calibrated profile of the machine that runs it.
#pragma once

#include <string>

#include "costmodel/scenario/scenario.hpp"

namespace runtime {

// Replaces the cluster's device by the profile; by a cluster's profile also the tiers. Also removes
// the overheads of the training framework, because the times were measured with this runtime, which
// overlaps only the transfers between stages. Throws ConfigError when the file is missing or was
// not written by `shardplan calibrate`.
void use_calibrated(costmodel::Scenario& scenario, const std::string& profile,
                    const costmodel::ConfigPath& path);

}  // namespace runtime
