// Reads the table of arguments that Megatron-LM prints at the top of a log ("------ arguments
// ------", one "  name ....... value" a line; megatron/training/arguments.py, _print_args).
#pragma once

#include <string>

#include "planner/frameworks/megatron_arguments.hpp"

namespace planner {

bool holds_megatron_log(const std::string& text);

// Each name as the flag that sets it; a switch that is off and a value None are left away. Never
// throws.
MegatronArguments read_megatron_log(const std::string& text, const std::string& file);

}  // namespace planner
