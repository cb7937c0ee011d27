// The shape of a series of iterations.
#include "planner/logs/log_series.hpp"

#include <doctest/doctest.h>

#include <functional>

namespace log_series_test {

using namespace planner;
using costmodel::Seconds;

namespace {

Pace of(int from, int to, const std::function<double(int)>& time) {
  std::vector<LoggedIteration> iterations;
  for (int n = from; n <= to; ++n) iterations.push_back({n, Seconds(time(n))});
  return pace_of(iterations);
}

double jitter(int n, double by) { return 1 + by * ((n * 7) % 11 - 5) / 5.0; }

}  // namespace

TEST_CASE("a steady series has no shape of its own, a noisy one does") {
  CHECK(of(1, 40, [](int n) { return jitter(n, 0.01); }).shape == SeriesShape::steady);
  CHECK(of(1, 40, [](int n) { return jitter(n, 0.08); }).shape == SeriesShape::noisy);
  CHECK(of(1, 40, [](int n) { return n == 30 ? 3.0 : 1.0; }).shape == SeriesShape::steady);
}

TEST_CASE("pauses with and without a rhythm") {
  CHECK(of(1, 60, [](int n) { return n % 8 == 0 ? 2.0 : 1.0; }).shape == SeriesShape::short_rhythm);
  CHECK(of(1, 200, [](int n) { return n % 50 == 0 ? 9.0 : 1.0; }).shape ==
        SeriesShape::long_rhythm);
  CHECK(of(1, 60, [](int n) { return n == 20 || n == 33 || n == 58 ? 2.0 : 1.0; }).shape ==
        SeriesShape::pauses);
}

TEST_CASE("iterations that take longer and longer") {
  const Pace pace = of(20, 24, [](int n) { return 11.0 + 3.6 * (n - 20); });
  CHECK(pace.shape == SeriesShape::growing);
  CHECK(pace.growth == doctest::Approx(3.6).epsilon(0.5));
  CHECK(pace.late > pace.early);
  CHECK(of(1, 60, [](int n) { return jitter(n, 0.01) * (1 + 0.02 * n); }).shape ==
        SeriesShape::growing);
}

TEST_CASE("a series that is slower from one iteration on, early or late") {
  for (const int at : {16, 25, 35}) {
    CAPTURE(at);
    const Pace pace = of(1, 40, [&](int n) { return jitter(n, 0.01) * (n < at ? 1.0 : 1.5); });
    CHECK(pace.shape == SeriesShape::stepped);
    CHECK(pace.since == at);
    CHECK(pace.late.value == doctest::Approx(1.5).epsilon(0.02));
    CHECK(pace.early.value == doctest::Approx(1).epsilon(0.02));
  }
}

TEST_CASE("the middle of no values, of an even and of an odd number of them") {
  CHECK(median({}) == 0);
  CHECK(median({3, 1, 2}) == 2);
  CHECK(median({4, 1, 2, 3}) == 2.5);
}

}  // namespace log_series_test
