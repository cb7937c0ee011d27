// Reads a device from a file in configs/devices.
#pragma once

#include <string>
#include <vector>

#include "costmodel/config/key_text.hpp"
#include "costmodel/config/value.hpp"
#include "costmodel/machine/cluster_spec.hpp"

namespace costmodel {

// Throws ConfigError.
DeviceSpec read_device(const Value& map, const std::string& name);

// The keys of a device ("device.gemm.efficiency").
std::vector<KeyText> device_keys();

}  // namespace costmodel
