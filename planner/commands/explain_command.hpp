// `shardplan explain`: the prediction as worked formulas.
#pragma once

#include "planner/commands/session.hpp"

namespace planner {

// Throws costmodel::ConfigError for bad input.
CommandResult explain_command(const Session& session);
// The same of a scenario of serving.
CommandResult explain_serving(const Session& session);

}  // namespace planner
