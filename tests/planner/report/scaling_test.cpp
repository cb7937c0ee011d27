#include "planner/report/scaling.hpp"

#include <doctest/doctest.h>

#include <cmath>

namespace scaling_test {

using planner::fill_scaling;
using planner::ScalingPoint;

namespace {

// Amdahl's law with a serial part, on powers of two.
std::vector<ScalingPoint> amdahl(double serial, int points) {
  std::vector<ScalingPoint> all;
  for (int i = 0; i < points; ++i) {
    const double n = std::pow(2, i);
    all.push_back({.devices = 1 << i, .tokens_per_s = 1000 / (serial + (1 - serial) / n)});
  }
  return all;
}

std::int64_t knee_of(const std::vector<ScalingPoint>& points) {
  for (const ScalingPoint& point : points)
    if (point.knee) return point.devices;
  return 0;
}

}  // namespace

TEST_CASE("speed-up and efficiency are against the fewest devices with a plan") {
  std::vector<ScalingPoint> points{{.devices = 16, .tokens_per_s = 150},
                                   {.devices = 4, .tokens_per_s = 0},
                                   {.devices = 8, .tokens_per_s = 100}};
  fill_scaling(points);
  CHECK(*points[0].speedup == 1.5);
  CHECK(*points[0].efficiency == 0.75);
  CHECK_FALSE(points[1].speedup);
  CHECK(*points[2].efficiency == 1);
  CHECK(knee_of(points) == 0);  // two points have no knee
}

// With E = 1 / (1 + f (n - 1)) and S = n E, E S is greatest where f (n - 1) + 1 = 2 f n, at
// n = (1 - f) / f: 63 for f = 1 / 64, where half of the speed-up's limit is reached.
TEST_CASE("by Amdahl's law the knee is where half of the greatest speed-up is reached") {
  auto points = amdahl(1.0 / 64, 12);
  fill_scaling(points);
  CHECK(knee_of(points) == 64);
  CHECK(*points[6].efficiency == doctest::Approx(0.5).epsilon(0.01));
}

TEST_CASE("perfect scaling has no knee, none at all has it at the least") {
  auto perfect = amdahl(0, 6);
  fill_scaling(perfect);
  CHECK(knee_of(perfect) == 0);
  auto none = amdahl(1, 6);
  fill_scaling(none);
  CHECK(knee_of(none) == 1);
  std::vector<ScalingPoint> empty;
  fill_scaling(empty);
  CHECK(empty.empty());
}

}  // namespace scaling_test
