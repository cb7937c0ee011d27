// The flags that Megatron-LM core 0.20.0 (2026-08) accepts, read off its argument parser
// (megatron/training/arguments.py and the arguments it makes from its configuration classes).
#pragma once

#include <string_view>
#include <vector>

namespace planner {

// Sorted, without the dashes: "num-layers".
const std::vector<std::string_view>& megatron_flags();

bool is_megatron_flag(std::string_view flag);  // "--num-layers"

}  // namespace planner
