// `shardplan calibrate --compare` and `--check`: reports that compare predictions with this
// machine, for one model's operators or for models held out of the calibration.
#pragma once

#include <string>

#include "costmodel/config/search_path.hpp"

namespace calibrate {

// Compares the scenario's model on one device, in fp32. `profile`: a device's name or file; "": the
// scenario's device. Throws ConfigError.
std::string compare_scenario(const std::string& scenario, const std::string& profile,
                             const costmodel::ConfigPath& path);

// Compares held_out_models(); reports the median and the largest error. Throws ConfigError.
std::string check_profile(const std::string& profile, const costmodel::ConfigPath& path);

}  // namespace calibrate
