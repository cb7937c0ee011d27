// `shardplan compare`: scenarios, and variants of the first one, side by side.
#pragma once

#include <string>
#include <vector>

#include "planner/commands/session.hpp"

namespace planner {

// The assignments of a `--with`, which stand between semicolons. Throws ConfigError for an empty
// one.
std::vector<std::string> assignments_of(const std::string& with);

CommandResult compare_command(const Session& session);

}  // namespace planner
