// Reads a file of configs/kernels.
#pragma once

#include <string>

#include "costmodel/config/value.hpp"
#include "costmodel/plan/kernel_set.hpp"

namespace costmodel {

// Throws ConfigError.
KernelSet read_kernel_set(const Value& map, const std::string& name);

}  // namespace costmodel
