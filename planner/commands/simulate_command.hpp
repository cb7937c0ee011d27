// `shardplan simulate`: one iteration, event by event.
#pragma once

#include "planner/commands/session.hpp"

namespace planner {

// Throws costmodel::ConfigError for bad input.
CommandResult simulate_command(const Session& session);

}  // namespace planner
