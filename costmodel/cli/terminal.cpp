#include "costmodel/cli/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include "costmodel/base/output_file.hpp"

namespace costmodel {

namespace {

std::string_view environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

// 0: not a number, or not said.
std::size_t columns_asked() {
  const std::string_view text = environment("COLUMNS");
  std::size_t columns = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), columns);
  return fault == std::errc() && end == text.data() + text.size() ? columns : 0;
}

std::size_t terminal_columns(int descriptor) {
  winsize size{};
  return ioctl(descriptor, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

}  // namespace

bool overwrites_lines(int descriptor) {
  return isatty(descriptor) == 1 && environment("TERM") != "dumb";
}

bool shows_colors(int descriptor) {
  return overwrites_lines(descriptor) && environment("NO_COLOR").empty();
}

std::size_t width_of_lines(int descriptor) {
  constexpr std::size_t least = 40;  // columns; no report says anything in fewer
  const std::size_t asked = columns_asked();
  const std::size_t columns = asked > 0 ? asked : terminal_columns(descriptor);
  return columns == 0 ? unlimited_width : std::max(least, columns);
}

void print_report(const std::string& text) {
  write_standard_output(wrapped(text, width_of_lines(STDOUT_FILENO)));
}

}  // namespace costmodel
