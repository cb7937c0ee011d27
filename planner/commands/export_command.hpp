// `shardplan export`: a plan in another program's own words.
#pragma once

#include "planner/commands/session.hpp"

namespace planner {

// Throws costmodel::ConfigError for bad input.
CommandResult export_command(const Session& session);

}  // namespace planner
