// What goes to standard error is one line a line, whatever is in it.
#include "costmodel/base/console.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <functional>
#include <string>

#include "costmodel/base/file_descriptor.hpp"
#include "tests/run_program.hpp"

namespace console_test {

using program::Scratch;

namespace {

std::string printed(const std::function<void()>& print) {
  const Scratch scratch;
  const std::string file = scratch.path() / "err";
  const costmodel::FileDescriptor before(dup(STDERR_FILENO));
  costmodel::FileDescriptor now(open(file.c_str(), O_WRONLY | O_CREAT, 0600));
  dup2(now.get(), STDERR_FILENO);
  print();
  dup2(before.get(), STDERR_FILENO);
  return scratch.read("err");
}

}  // namespace

TEST_CASE("messages are lines without control characters") {
  CHECK(printed([] { costmodel::print_message("a\x1b[31m\nb"); }) == "a\\x1b[31m\nb\n");
  CHECK(printed([] { costmodel::print_message("a\n"); }) == "a\n");
  CHECK(printed([] { costmodel::print_constant("out of memory\n"); }) == "out of memory\n");
}

TEST_CASE("progress is one line, in place of the one before") {
  CHECK(printed([] { costmodel::print_progress("1\n2"); }) == "\r\x1b[K1\\n2");
  CHECK(printed([] { costmodel::clear_progress(); }) == "\r\x1b[K");
}

}  // namespace console_test
