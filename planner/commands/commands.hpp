// Runs a command: options in, text and exit status out. Only main writes to standard output.
#pragma once

#include "planner/commands/options.hpp"
#include "planner/commands/session.hpp"

namespace planner {

// Throws costmodel::ConfigError for bad input.
CommandResult run_command(const Options& options, const Style& style);

}  // namespace planner
