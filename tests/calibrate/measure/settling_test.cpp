// When something that is repeated has warmed up, by a clock that the test moves.
#include "calibrate/measure/settling.hpp"

#include <doctest/doctest.h>

#include <vector>

namespace settling_test {

using calibrate::settled;
using calibrate::Settling;
using costmodel::Seconds;

namespace {

struct Runs {
  double now = 0;
  int done = 0;
  // The first so many take twice as long, but ever less.
  calibrate::Settled settle(int slow, const Settling& rule) {
    const auto run = [&] {
      const double time = done < slow ? 0.2 - 0.1 * done / slow : 0.1;
      ++done;
      now += time;
      return Seconds(time);
    };
    return calibrate::settle(run, rule, [this] { return Seconds(now); });
  }
};

}  // namespace

TEST_CASE("the last times agree, or there are too few of them") {
  const std::vector<double> times{2, 1, 1.01, 1.02};
  CHECK(settled(times, 3, 0.0201));
  CHECK(!settled(times, 3, 0.019));
  CHECK(!settled(times, 4, 0.5));
  CHECK(!settled(times, 5, 10));
}

TEST_CASE("it goes on until the times agree, for a second at least") {
  const Settling rule{.apart = 0.02, .last = 4, .least = Seconds(1), .most = Seconds(100)};
  Runs steady;
  const auto at_once = steady.settle(0, rule);
  CHECK(at_once.settled);
  CHECK(at_once.taken.value == doctest::Approx(1).epsilon(0.11));
  Runs warming;
  CHECK(warming.settle(20, rule).settled);
  CHECK(warming.done == 20 + 4);
}

TEST_CASE("it ends where the times never agree") {
  Runs warming;
  const auto ended = warming.settle(1000, {.apart = 1e-6, .most = Seconds(2)});
  CHECK(!ended.settled);
  CHECK(ended.taken.value == doctest::Approx(2).epsilon(0.11));
}

}  // namespace settling_test
