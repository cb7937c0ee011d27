// The commands of `shardplan`, one record each, and what runs them: options in, text and exit
// status out. Only main writes to standard output.
#pragma once

#include <string_view>

#include "costmodel/cli/command_line.hpp"
#include "planner/commands/options.hpp"
#include "planner/commands/session.hpp"

namespace planner {

// The records of all commands and flags.
const costmodel::Program& shardplan();

// Whether the command is a program of its own, to which this one hands over.
bool is_handed_over(std::string_view command);

// Whether it is `calibrate --from-log`, which needs no machine and reads what the planner reads: it
// is done here.
bool fits_from_logs(int count, const char* const* arguments);

// Throws costmodel::ConfigError for bad input.
CommandResult run_command(const Options& options, const Style& style);

}  // namespace planner
