// What standard output or standard error may be written with: colours, lines written over, and how
// wide its lines may be.
#pragma once

#include <cstddef>
#include <string>

#include "costmodel/base/text_width.hpp"

namespace costmodel {

// Whether the descriptor is a terminal that moves its cursor: TERM is not "dumb".
bool overwrites_lines(int descriptor);

// The same, where NO_COLOR (no-color.org) is unset or empty.
bool shows_colors(int descriptor);

// COLUMNS if it is a number, else the terminal's width, else unlimited; never below 40.
std::size_t width_of_lines(int descriptor);

// Writes a report to standard output, its lines broken where they are wider than that.
void print_report(const std::string& text);

}  // namespace costmodel
