// Where configurations are looked for: --config-path, $SHARDPLAN_CONFIG_PATH, beside the program,
// the source tree.
#pragma once

#include <string>
#include <vector>

#include "costmodel/config_files.hpp"

namespace costmodel {

ConfigPath config_path(const std::vector<std::string>& given);

}  // namespace costmodel
