// `shardplan init [FILE]`: a commented scenario to start from.
#pragma once

#include "planner/commands/session.hpp"

namespace planner {

// Of --model, --gpus and the other words of a scenario, or of what is typed on a terminal where
// nothing is given. Throws ConfigError for a FILE that exists: none is overwritten.
CommandResult init_command(const Session& session);

}  // namespace planner
