// What a shell completes, and the manual page: made of the records from which --help is.
#pragma once

#include <string>

#include "costmodel/cli/command_line.hpp"

namespace planner {

// The script of a shell: bash, zsh or fish. Names of models, clusters, scenarios and keys are asked
// of `shardplan list` when they are completed. Throws ConfigError for another shell.
std::string completions(const costmodel::Program& program, const std::string& shell);

// The manual page of all commands, for man.
std::string manual_page(const costmodel::Program& program);

}  // namespace planner
