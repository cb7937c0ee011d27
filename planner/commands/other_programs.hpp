// Commands that are separate programs, as in git: `shardplan calibrate` runs shardplan-calibrate
// from shardplan's own directory. The planner therefore links neither calibrate nor runtime.
#pragma once

namespace planner {

// Replaces this process by the program of the command that the first word names, with the remaining
// arguments and with SHARDPLAN_CONFIG_PATH set to all configuration directories. Throws ConfigError
// if the program is missing or cannot be started; otherwise never returns.
[[noreturn]] void hand_over(int count, char** arguments);

// Whether help on the command is asked for and its program is not there to give it: this one says
// what it does.
bool only_helps(int count, const char* const* arguments);

}  // namespace planner
