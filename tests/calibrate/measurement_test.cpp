// When a measurement ends, with a clock that the test moves.
#include "calibrate/measurement.hpp"

#include <doctest/doctest.h>

using calibrate::StopRule;
using costmodel::Seconds;

namespace {

// A run takes the next of these times, over and over.
struct Runs {
  std::vector<double> times;
  double now = 0;
  std::size_t done = 0;
  calibrate::Timing measure(const StopRule& rule) {
    return calibrate::measure([this] { now += times[done++ % times.size()]; }, rule,
                              [this] { return Seconds(now); });
  }
};

}  // namespace

TEST_CASE("steady times end at the least number of repeats, the warm-up left out") {
  Runs runs{{1}};
  const auto timing = runs.measure({.warm_up = 3, .least = 5, .longest = Seconds(1e9)});
  CHECK(runs.done == 8);
  CHECK(timing.repeats == 5);
  CHECK(timing.median == Seconds(1));
  CHECK(timing.relative_error == 0);
}

TEST_CASE("unsteady times go on until the median is known") {
  Runs runs{{0.9, 1.1, 1.0, 0.95, 1.05}};
  const StopRule rule{.relative_error = 0.01, .warm_up = 0, .longest = Seconds(1e9)};
  const auto timing = runs.measure(rule);
  CHECK(timing.relative_error <= 0.01);
  CHECK(timing.repeats > 50);  // 1.86 · 0.05 / sqrt(n) <= 0.01
  CHECK(timing.repeats < 120);
  CHECK(timing.least.value == doctest::Approx(0.9));
  CHECK(timing.median.value == doctest::Approx(1).epsilon(0.06));
}

TEST_CASE("time and number are limits, and two runs are always made") {
  Runs wild{{1, 100, 10, 50, 30, 80}};
  CHECK(wild.measure({.warm_up = 0, .least = 5, .longest = Seconds(300)}).repeats == 8);
  Runs slow{{50}};
  CHECK(slow.measure({.warm_up = 1, .least = 5, .longest = Seconds(1)}).repeats == 2);
  Runs many{{1, 2, 4, 8, 16}};
  CHECK(many.measure({.warm_up = 0, .most = 10, .longest = Seconds(1e9)}).repeats == 10);
}

TEST_CASE("a summary") {
  CHECK(calibrate::summarised({}).repeats == 0);
  const auto even = calibrate::summarised({4, 1, 2, 3});
  CHECK(even.median == Seconds(2.5));
  CHECK(even.least == Seconds(1));
  CHECK(even.relative_error == doctest::Approx(1.2533 * 1.4826 * 1 / 2.5 / 2));
}

TEST_CASE("times are brought to the best pace, the mean of those before and after") {
  double now = 0;
  std::vector<double> paces{1, 0.5, 0.5, 1, 0.25};
  std::size_t next = 0;
  const auto timing = calibrate::measure(
      [&] { now += 8; }, {.warm_up = 1, .least = 3, .most = 3, .longest = Seconds(1e9)},
      [&] { return Seconds(now); }, [&] { return paces[next++]; });
  CHECK(timing.repeats == 3);
  CHECK(timing.least == Seconds(4));   // 0.5 before and after
  CHECK(timing.median == Seconds(5));  // of 4, 6 and 5
}
