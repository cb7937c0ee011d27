// Commands that are programs of their own, as git has them: `shardplan calibrate` becomes
// shardplan-calibrate, found beside shardplan. So the planner links neither.
#pragma once

#include <string>

namespace planner {

// Whether the first word of the command line is such a command.
bool is_handed_over(int count, const char* const* arguments);

// Replaces this process by the command's program, with the words behind the command and with
// SHARDPLAN_CONFIG_PATH set to all directories of configurations. Returns only by ConfigError: the
// program is not there or cannot be started.
[[noreturn]] void hand_over(int count, char** arguments);

}  // namespace planner
