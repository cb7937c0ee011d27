// `shardplan validate`: predictions beside published runs, constants fitted to them.
#pragma once

#include "planner/commands/commands.hpp"

namespace planner {

// Throws costmodel::ConfigError for bad input.
CommandResult validate_runs(const Session& session);

}  // namespace planner
