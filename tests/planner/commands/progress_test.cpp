#include "planner/commands/progress.hpp"

#include <doctest/doctest.h>

namespace progress_test {

using planner::Progress;
using planner::Stopwatch;

TEST_CASE("a search without a limit is not asked about the time, one with a limit until it is up") {
  const Stopwatch watch;
  Progress without(watch, 0, false);
  CHECK(!without.expired());
  Progress hour(watch, 3600, false);
  const auto within = hour.expired();
  REQUIRE(within);
  CHECK(!within());
  Progress instant(watch, 1e-9, false);
  const auto up = instant.expired();
  REQUIRE(up);
  while (watch.seconds() <= 1e-9) continue;
  CHECK(up());
}

}  // namespace progress_test
