// Where memory runs out, wherever that is, a command ends with a sentence and a status of its own:
// no thread is left that nobody joins, and nothing throws where nobody catches.
#include <doctest/doctest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "tests/planner/support/cli_cases.hpp"
#include "tests/run_program.hpp"
#include "tests/sanitized.hpp"

namespace failed_allocation_test {

using program::Run;
using program::run;
using program::Scratch;

namespace {

// Every allocation of the first, which come before main(), and some of the others.
std::vector<int> failures() {
  std::vector<int> all;
  for (int at = 1; at < 1500; at += at < 40 ? 1 : 37) all.push_back(at);
  return all;
}

}  // namespace

TEST_CASE("the commands tried have answers where no allocation fails") {
  const Scratch scratch;
  CHECK(run(program::words_of("list models"), scratch).status == 0);
}

// With sanitizers their own allocator takes the place of the one that fails.
TEST_CASE("no failed allocation ends a command by a signal" * doctest::skip(sanitized)) {
  const Scratch scratch;
  scratch.write("llama.yaml", cli::llama);
  for (const char* command : {"evaluate llama.yaml", "plan tiny-gpt-cpu", "list models",
                              "batch llama.yaml --out o --command evaluate"}) {
    for (const int at : failures()) {
      setenv("FAIL_AT", std::to_string(at).c_str(), 1);
      setenv("LD_PRELOAD", SHARDPLAN_FAILED_ALLOCATION, 1);
      const Run ended = run(program::words_of(command), scratch);
      unsetenv("LD_PRELOAD");
      unsetenv("FAIL_AT");
      CAPTURE(command);
      CAPTURE(at);
      CAPTURE(ended.err);
      CHECK(ended.status <= 4);
      if (ended.status == 1)
        CHECK(ended.err.find("the memory that this process may use is exhausted") !=
              std::string::npos);
    }
  }
}

TEST_CASE("a command that may begin no thread does its work in one" * doctest::skip(sanitized)) {
  const Scratch scratch;
  scratch.write("llama.yaml", cli::llama);
  for (const char* command : {"plan tiny-gpt-cpu", "evaluate llama.yaml", "plan llama.yaml",
                              "batch llama.yaml --out o --command evaluate --quiet"}) {
    setenv("NO_THREADS", "1", 1);
    setenv("LD_PRELOAD", SHARDPLAN_FAILED_ALLOCATION, 1);
    const Run ended = run(program::words_of(command), scratch);
    unsetenv("LD_PRELOAD");
    unsetenv("NO_THREADS");
    CAPTURE(command);
    CAPTURE(ended.err);
    CHECK(ended.status == 0);
  }
}

}  // namespace failed_allocation_test
