#include "planner/batch/child.hpp"

#include <doctest/doctest.h>

namespace child_test {

using planner::run_child;

TEST_CASE("a child's status and what it says") {
  const auto end = run_child("/bin/sh", {"sh", "-c", "echo said >&2; echo lost; exit 7"}, {});
  CHECK(end.status == 7);
  CHECK(end.errors == "said\n");
  CHECK_FALSE(end.stopped);
  CHECK(run_child("/bin/sh", {"sh", "-c", "kill -9 $$"}, {}).status == 137);
  CHECK(run_child("/no/such/program", {"x"}, {}).status == 127);
}

TEST_CASE("a child that is stopped does not go on") {
  const auto end = run_child("/bin/sleep", {"sleep", "600"}, [] { return true; });
  CHECK(end.stopped);
  CHECK(end.status == 137);
}

}  // namespace child_test
