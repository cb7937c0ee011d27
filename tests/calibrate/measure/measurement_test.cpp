// When a measurement ends, with a clock that the test moves.
#include "calibrate/measure/measurement.hpp"
#include "calibrate/measure/pace.hpp"

#include <doctest/doctest.h>

#include <cmath>

namespace measurement_test {

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

TEST_CASE("times are brought to the reference's pace: all time over all slowdown") {
  double now = 0;
  std::vector<double> slowdowns{1, 2, 2, 1, 4};
  std::size_t next = 0;
  const auto timing = calibrate::measure(
      [&] { now += 8; }, {.warm_up = 1, .least = 3, .most = 3, .longest = Seconds(1e9)},
      [&] { return Seconds(now); }, [&] { return slowdowns[next++]; });
  CHECK(timing.repeats == 3);
  // 2, 1.5 and 2.5: the means of those before and after, the warm-up's left out.
  CHECK(timing.median.value == doctest::Approx(24.0 / 6));
  CHECK(timing.least.value == doctest::Approx(8 / 2.5));
}

TEST_CASE("a pace that changes within what is timed does not move the sums") {
  // A piece of work takes 10 ms at the reference's pace; half of it passes three times as slowly.
  // The yardstick beside it sees one or the other, and never the 2 of the whole.
  std::vector<double> times(1000, 0.02), slowdowns;
  for (std::size_t i = 0; i < times.size(); ++i) slowdowns.push_back(i % 2 == 0 ? 1 : 3);
  CHECK(calibrate::at_reference(times, slowdowns).median.value == doctest::Approx(0.01));
  times.push_back(1);  // interrupted
  slowdowns.push_back(1);
  const auto timing = calibrate::at_reference(times, slowdowns);
  CHECK(timing.median.value == doctest::Approx(0.01));
  CHECK(timing.repeats == 1000);
  CHECK(timing.relative_error == doctest::Approx(0.5 / std::sqrt(1000)).epsilon(0.01));
  CHECK(calibrate::at_reference({}, {}).repeats == 0);
}

TEST_CASE(
    "a yardstick from which the core was taken away is taken again, a slow machine's is not lost") {
  std::vector<double> said;
  const auto in_turn = [&said] {
    const double slowdown = said.front();
    said.erase(said.begin());
    return slowdown;
  };
  said = {1.9, 7};
  CHECK(calibrate::undisturbed(in_turn) == 1.9);
  said = {80, 1.2, 7};
  CHECK(calibrate::undisturbed(in_turn) == 1.2);
  said = {5, 6, 5.5, 1};
  CHECK(calibrate::undisturbed(in_turn) == 5.5);
}

}  // namespace measurement_test
