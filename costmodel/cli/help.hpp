// Help from the records of the command line.
#pragma once

#include <string>

#include "costmodel/base/text_width.hpp"
#include "costmodel/cli/command_line.hpp"

namespace costmodel {

// Of a program: its commands, and the flags that all of them take. Of one command: usage, summary,
// examples and the flags that it takes. A program of one command has only the latter. Lines are
// broken at 100 columns, or at `width`.
std::string help_of(const Program& program, const Command* command,
                    std::size_t width = unlimited_width);

}  // namespace costmodel
