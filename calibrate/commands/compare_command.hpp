// Reports that hold predictions against this machine: an operator, or models never calibrated with.
#pragma once

#include <string>

#include "costmodel/config/search_path.hpp"

namespace calibrate {

// Of the scenario's model on one device, in fp32; `profile`: a device's name or file, "" for the
// scenario's own. Throws ConfigError.
std::string compare_scenario(const std::string& scenario, const std::string& profile,
                             const costmodel::ConfigPath& path);

// Of held_out_models(), with the median and the largest error. Throws ConfigError.
std::string check_profile(const std::string& profile, const costmodel::ConfigPath& path);

}  // namespace calibrate
