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

TEST_CASE("a child whose time is over does not go on, and one in time is not late") {
  const auto late = run_child("/bin/sleep", {"sleep", "600"}, {}, {.seconds = 0.1});
  CHECK(late.late);
  CHECK_FALSE(late.stopped);
  CHECK(late.status == 137);
  CHECK_FALSE(run_child("/bin/sh", {"sh", "-c", "exit 0"}, {}, {.seconds = 600}).late);
}

TEST_CASE("a child has no more memory than it may have") {
  const std::size_t some = std::size_t{64} << 20;
  const auto end = run_child("/bin/sh", {"sh", "-c", "ulimit -d >&2"}, {}, {.memory = some});
  CHECK(end.errors == "65536\n");  // KiB
}

}  // namespace child_test
