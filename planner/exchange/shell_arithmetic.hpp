// The arithmetic of a launch script: $((NODES * GPUS_PER_NODE)).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace planner {

// The text of a variable, or nothing when the script does not say it.
using VariableText = std::function<std::optional<std::string>(const std::string& name)>;

// The value of integers, variables (with or without '$' and braces), + - * / %, comparisons,
// && and ||, which are 1 or 0, and brackets.
// Nothing for any other expression, an unknown variable, a division by zero, an overflow, and
// brackets deeper than 64. Never throws.
std::optional<std::int64_t> shell_arithmetic(const std::string& expression,
                                             const VariableText& variable);

}  // namespace planner
