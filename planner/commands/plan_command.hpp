// `shardplan plan`: searches the best plans.
#pragma once

#include "planner/commands/session.hpp"

namespace planner {

// Throws costmodel::ConfigError for bad input.
CommandResult plan_command(const Session& session);
// The same of a scenario of serving.
CommandResult plan_serving(const Session& session);

}  // namespace planner
