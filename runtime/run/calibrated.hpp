// A scenario as the machine that executes it was measured.
#pragma once

#include <string>

#include "costmodel/scenario/scenario.hpp"

namespace runtime {

// Replaces the cluster's device by the profile, or, when the profile is a cluster, device and
// tiers, and the constants of a training framework by none: times were measured with this runtime's
// own, which overlaps transfers between stages and nothing else. Throws ConfigError: no such file,
// or none that `shardplan calibrate` writes.
void use_calibrated(costmodel::Scenario& scenario, const std::string& profile,
                    const costmodel::ConfigPath& path);

}  // namespace runtime
