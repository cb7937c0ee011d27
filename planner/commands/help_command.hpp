// `shardplan help [TOPIC]`, `shardplan version`, and what is said where nothing is asked.
#pragma once

#include <string>
#include <vector>

#include "costmodel/cli/command_line.hpp"

namespace planner {

// "shardplan 0.1.0".
std::string version_text();

// Ten lines on what can be typed.
std::string opening();

// Help on the program (no words), a command or a topic. Throws ConfigError for another word, with
// the nearest.
std::string help_on(const costmodel::Program& program, const std::vector<std::string>& words);

// The topics that are not commands: "exit-status, formats".
std::string help_topics();

}  // namespace planner
