#include "costmodel/base/console.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <iostream>

#include "costmodel/base/escape.hpp"

namespace costmodel {

namespace {

constexpr const char* over_the_line = "\r\x1b[K";

void put(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

}  // namespace

void print_message(const std::string& text) {
  put(printable_lines(text) + (text.ends_with('\n') ? "" : "\n"));
}

void print_constant(const char* text) noexcept {
  // Where standard error cannot be written, nobody is left to be informed.
  if (write(STDERR_FILENO, text, std::strlen(text)) < 0) return;
}

void print_progress(const std::string& text) { put(over_the_line + printable(text)); }

void clear_progress() { put(over_the_line); }

std::string read_answer(const std::string& question) {
  put(printable(question));
  std::string line;
  std::getline(std::cin, line);
  return line;
}

}  // namespace costmodel
