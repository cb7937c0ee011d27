// Commands that are separate programs, as in git: `shardplan calibrate` runs shardplan-calibrate
// from shardplan's own directory. The planner therefore links neither calibrate nor runtime.
#pragma once

#include <string>

namespace planner {

// Whether the first word of the command line is such a command.
bool is_handed_over(int count, const char* const* arguments);

// Replaces this process by the command's program, with the remaining arguments and with
// SHARDPLAN_CONFIG_PATH set to all configuration directories. Throws ConfigError if the program is
// missing or cannot be started; otherwise never returns.
[[noreturn]] void hand_over(int count, char** arguments);

}  // namespace planner
