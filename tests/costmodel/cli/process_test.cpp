#include "costmodel/cli/process.hpp"

#include <doctest/doctest.h>
#include <sys/resource.h>

#include "costmodel/base/error.hpp"
#include "tests/sanitized.hpp"

TEST_CASE("a program asks for a stack before it begins") {
  CHECK_NOTHROW(costmodel::require_process("shardplan"));
  if (sanitized) return;  // whose frames are larger than the limit below
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_STACK, &before) == 0);
  const rlimit small{200 << 10, before.rlim_max};
  setrlimit(RLIMIT_STACK, &small);
  std::string refusal;
  try {
    costmodel::require_process("shardplan run");
  } catch (const costmodel::ConfigError& fault) {
    refusal = fault.what();
  }
  setrlimit(RLIMIT_STACK, &before);
  CHECK(refusal ==
        "shardplan run: a stack of 200 KiB is too small; ulimit -s 8192 gives the usual one");
}
