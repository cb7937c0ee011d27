// The commands: options in, text and exit status out. Nothing here writes to standard output; main
// does.
#pragma once

#include <string>
#include <vector>

#include "costmodel/config/search_path.hpp"
#include "planner/commands/options.hpp"
#include "planner/report/plan_report.hpp"

namespace planner {

struct CommandResult {
  int status = 0;
  std::string text;
  std::vector<std::string> warnings;  // to standard error, unless --quiet
  // To standard error: why there is no text in the format that was asked for. Nothing is then
  // written to standard output or --out.
  std::string failure = {};
};

// What a command works with.
struct Session {
  const Options& options;
  ReportStyle style;
  costmodel::ConfigPath path;
};

// Throws costmodel::ConfigError for bad input.
CommandResult run_command(const Options& options, const Style& style);

}  // namespace planner
