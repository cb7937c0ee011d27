#include "costmodel/base/console.hpp"

#include <cxxabi.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iostream>
#include <new>
#include <typeinfo>

#include "costmodel/base/escape.hpp"

namespace costmodel {

namespace {

constexpr const char* over_the_line = "\r\x1b[K";

const char* without_memory = "";

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

void print_when_memory_ends(const char* text) {
  without_memory = text;
  std::set_terminate([] {
    const std::type_info* const thrown = abi::__cxa_current_exception_type();
    if (thrown == nullptr || *thrown != typeid(std::bad_alloc)) std::abort();
    print_constant(without_memory);
    std::_Exit(1);
  });
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
