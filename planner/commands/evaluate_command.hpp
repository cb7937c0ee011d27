// `shardplan evaluate`: predicts one plan.
#pragma once

#include "planner/commands/session.hpp"

namespace planner {

// Throws costmodel::ConfigError for bad input.
CommandResult evaluate_command(const Session& session);
// The same of a scenario of serving.
CommandResult evaluate_serving(const Session& session);

}  // namespace planner
