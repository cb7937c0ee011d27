#include "planner/commands/progress.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <thread>
#include <vector>

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

TEST_CASE("what else ends a search is asked first, with a limit or without") {
  const Stopwatch watch;
  bool stopped = false;
  for (const double most : {0.0, 3600.0}) {
    Progress progress(watch, most, false, [&stopped] { return stopped; });
    const auto expired = progress.expired();
    REQUIRE(expired);
    stopped = false;
    CHECK_FALSE(expired());
    stopped = true;
    CHECK(expired());
  }
}

TEST_CASE("threads poll it together, and all are told of the end") {
  const Stopwatch watch;
  std::atomic<bool> stopped{false};
  Progress progress(watch, 3600, true, [&stopped] { return stopped.load(); });
  const auto expired = progress.expired();
  std::atomic<int> ended{0};
  constexpr int threads = 4;
  {
    std::vector<std::jthread> pollers;
    for (int i = 0; i < threads; ++i) {
      pollers.emplace_back([&] {
        while (!expired()) continue;
        ++ended;
      });
    }
    CHECK_FALSE(expired());
    stopped = true;
  }
  CHECK(ended == threads);
}

}  // namespace progress_test
