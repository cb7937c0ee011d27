// `shardplan groups`.
#pragma once

#include "planner/commands/session.hpp"

namespace planner {

// Of a scenario's plan, or of sizes alone. Throws ConfigError.
CommandResult groups_command(const Session& session);
// The ranks of an engine that serves the scenario.
CommandResult groups_serving(const Session& session);

}  // namespace planner
