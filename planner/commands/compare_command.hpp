// `shardplan compare`: scenarios, and variants of the first one, side by side.
#pragma once

#include <string>
#include <vector>

#include "costmodel/config/value.hpp"
#include "planner/commands/session.hpp"

namespace planner {

// The assignments of a `--with`, which stand between semicolons. Throws ConfigError for an empty
// one.
std::vector<std::string> assignments_of(const std::string& with);

// A column of the comparison: a scenario, or a variant of the first one.
struct Asked {
  std::string name, operand;
  std::vector<std::string> with;
};
// What the command line asks for, under distinct names. Throws ConfigError for one column alone.
std::vector<Asked> columns_of(const Options& options);
// A column's scenario with its assignments.
costmodel::Value tree_of(const Session& session, const Asked& column);

CommandResult compare_command(const Session& session);
// The same of scenarios of serving.
CommandResult compare_serving(const Session& session);

}  // namespace planner
