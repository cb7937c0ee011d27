// Runs a command of `shardplan` in the test's own process, which takes no second program.
#pragma once

#include <string>
#include <vector>

#include "costmodel/base/error.hpp"
#include "planner/commands/commands.hpp"
#include "planner/commands/options.hpp"
#include "planner/report/style.hpp"
#include "tests/run_program.hpp"

namespace in_process {

// Words are apart by blanks, the first is "shardplan".
inline planner::CommandResult run(const std::string& command, const planner::Style& style = {}) {
  const std::vector<std::string> words = program::words_of(command);
  std::vector<const char*> arguments;
  for (const auto& word : words) arguments.push_back(word.c_str());
  const auto options = planner::parse_command_line(
      planner::shardplan(), static_cast<int>(arguments.size()), arguments.data());
  return planner::run_command(options, style);
}

// What it prints, or the message of a ConfigError.
inline std::string printed(const std::string& command) {
  try {
    return run("shardplan " + command).text;
  } catch (const costmodel::ConfigError& error) {
    return error.what();
  }
}

}  // namespace in_process
