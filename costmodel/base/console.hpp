// What a command writes to standard error while it works, and asks: the one place that does. All
// text may hold pieces of a user's files: control characters are shown as in escape.hpp.
#pragma once

#include <string>

namespace costmodel {

// Lines of a message; the last gets a line end if it has none.
void print_message(const std::string& text);

// The same for a constant text where memory may have run out: allocates nothing.
void print_constant(const char* text) noexcept;

// From now on, where memory runs out and no handler is reached (nlohmann's destructors allocate),
// the text is printed and the process ends with status 1. `text` must be constant.
void print_when_memory_ends(const char* text);

// One line on a terminal, in place of the one shown before; and without it again.
void print_progress(const std::string& text);
void clear_progress();

// A line typed after the question, without its end.
std::string read_answer(const std::string& question);

}  // namespace costmodel
