// Reads a device from a file in configs/devices.
#pragma once

#include <string>

#include "costmodel/config/value.hpp"
#include "costmodel/machine/cluster_spec.hpp"

namespace costmodel {

// Throws ConfigError.
DeviceSpec read_device(const Value& map, const std::string& name);

}  // namespace costmodel
