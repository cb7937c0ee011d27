// Help from the records of the command line.
#pragma once

#include <string>

#include "costmodel/cli/command_line.hpp"

namespace costmodel {

// Of a program: its commands, and the flags that all of them take. Of one command: usage, summary,
// examples and the flags that it takes. A program of one command has only the latter.
std::string help_of(const Program& program, const Command* command);

}  // namespace costmodel
