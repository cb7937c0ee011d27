// `shardplan import`: converts other programs' descriptions to YAML.
#pragma once

#include "planner/commands/session.hpp"

namespace planner {

// Throws costmodel::ConfigError for bad input.
CommandResult import_command(const Session& session);

}  // namespace planner
