// `shardplan validate`: compares predictions with published runs and fits constants to them.
#pragma once

#include "planner/commands/session.hpp"

namespace planner {

// Throws costmodel::ConfigError for bad input.
CommandResult validate_command(const Session& session);

}  // namespace planner
