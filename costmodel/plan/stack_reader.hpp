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

// Reads the keys of `overlap`; missing keys keep the value in `base`. `dp_overlap` sets both
// data-parallel keys.
Overlap read_overlap(const Value& map, Overlap base);

// The keys of a stack ("stack.launch.kernel_s") and of training.overlap.
std::vector<KeyText> stack_keys();
std::vector<KeyText> overlap_keys_text();

}  // namespace costmodel
