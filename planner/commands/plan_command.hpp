// `shardplan plan`: the best plans, by one search or another.
#pragma once

#include "planner/commands/session.hpp"

namespace planner {

// Throws costmodel::ConfigError for bad input.
CommandResult plan_command(const Session& session);

}  // namespace planner
