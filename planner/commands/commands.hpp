// The commands: options in, text and exit status out. Nothing here writes to standard output; main
// does.
#pragma once

#include "planner/commands/options.hpp"
#include "planner/commands/session.hpp"

namespace planner {

// Throws costmodel::ConfigError for bad input.
CommandResult run_command(const Options& options, const Style& style);

}  // namespace planner
