#include "planner/search/device_front.hpp"

#include <doctest/doctest.h>

#include "tests/planner/support/best_even.hpp"
#include "tests/planner/support/device_runs.hpp"

namespace device_front_test {

using costmodel::Estimate;
using costmodel::Scenario;
using planner::device_counts;
using planner::device_front;
using planner::FrontPoint;
using planner::memory_front;
using planner::Reach;

namespace {

std::vector<Estimate> own_front(const Scenario& s) {
  return memory_front(s, best_even::best_of(s), {.reach = Reach::even});
}

bool beats(const FrontPoint& a, const FrontPoint& b) {
  const bool as_good = a.plan.iteration <= b.plan.iteration && a.devices <= b.devices &&
                       a.device_seconds <= b.device_seconds && a.plan.peak <= b.plan.peak;
  const bool better = a.plan.iteration < b.plan.iteration || a.devices < b.devices ||
                      a.device_seconds < b.device_seconds || a.plan.peak < b.plan.peak;
  return as_good && better;
}

}  // namespace

TEST_CASE("the numbers of devices tried are nodes and powers of two, and all") {
  const auto counts = [](std::int64_t devices) {
    auto s = device_runs::priced();
    s.cluster = resized(s.cluster, devices);
    return device_counts(s.cluster);
  };
  CHECK(counts(64) == std::vector<std::int64_t>{1, 2, 4, 8, 16, 24, 32, 48, 64});
  CHECK(counts(40) == std::vector<std::int64_t>{1, 2, 4, 8, 16, 24, 32, 40});
  CHECK(counts(4) == std::vector<std::int64_t>{1, 2, 4});
  CHECK(counts(1) == std::vector<std::int64_t>{1});
}

TEST_CASE("the front holds what nothing beats, and only that") {
  const Scenario s = device_runs::priced();
  const auto own = own_front(s);
  const auto front = device_front(s, own, {.reach = Reach::even, .threads = 2});
  CHECK_FALSE(front.interrupted);
  std::size_t on = 0, off = 0;
  for (const FrontPoint& point : front.points) {
    CHECK(point.device_seconds == static_cast<double>(point.devices) * point.plan.iteration.value);
    bool beaten = false;
    for (const FrontPoint& other : front.points) beaten = beaten || beats(other, point);
    CHECK(point.on_front == !beaten);
    ++(point.on_front ? on : off);
  }
  CHECK(on >= 3);
  // The best plan of all devices is the soonest, so nothing beats it.
  const auto& all = front.points[front.points.size() - own.size()];
  CHECK(all.devices == 64);
  CHECK(all.plan.plan == own.front().plan);
  CHECK(all.on_front);
  // Each of fewer devices is what the search finds there.
  for (const FrontPoint& point : front.points) {
    if (point.devices != 16) continue;
    Scenario fewer = s;
    fewer.cluster = resized(s.cluster, 16);
    CHECK(best_even::best_of(fewer).iteration == point.plan.iteration);
  }
}

TEST_CASE("a front is the same on several threads, and stops when it is told") {
  const Scenario s = device_runs::priced();
  const auto own = own_front(s);
  const auto one = device_front(s, own, {.reach = Reach::even}),
             many = device_front(s, own, {.reach = Reach::even, .threads = 3});
  REQUIRE(one.points.size() == many.points.size());
  for (std::size_t i = 0; i < one.points.size(); ++i) {
    CHECK(one.points[i].devices == many.points[i].devices);
    CHECK(one.points[i].plan.iteration == many.points[i].plan.iteration);
    CHECK(one.points[i].on_front == many.points[i].on_front);
  }
  const auto none = device_front(s, own, {.threads = 2}, [] { return true; });
  CHECK(none.interrupted);
  CHECK(none.points.size() == own.size());
}

}  // namespace device_front_test
