// Reads a stack from a file in configs/stacks.
#pragma once

#include <string>
#include <vector>

#include "costmodel/config/key.hpp"
#include "costmodel/config/value.hpp"
#include "costmodel/plan/stack_spec.hpp"

namespace costmodel {

// Throws ConfigError.
StackSpec read_stack(const Value& map, const std::string& name);

// The rows of `overlap`, of a stack and of `training`. `dp_overlap` sets both data-parallel keys.
const Keys<Overlap>& overlap_keys();

// The keys of a stack ("stack.launch.kernel_s").
std::vector<KeyText> stack_keys();

}  // namespace costmodel
