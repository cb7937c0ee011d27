#include "planner/search/serving_search.hpp"

#include <doctest/doctest.h>

#include "tests/costmodel/serving/support/served.hpp"

using namespace planner;
using costmodel::Seconds;

namespace {
costmodel::ServingEstimate estimate_with(double ttft, double tpot, double output) {
  costmodel::ServingEstimate e;
  e.fits = true;
  e.ttft.mean = ttft;
  e.tpot.mean = tpot;
  e.output_per_s = output;
  return e;
}
}  // namespace

TEST_CASE("Each bound that is asked is kept or missed, with what is reported") {
  auto s = served::usual();
  CHECK(asked_bounds(s, estimate_with(1, 1, 1)).empty());
  s.serving.bound.ttft = Seconds(2);
  s.serving.bound.tpot = Seconds(0.02);
  s.serving.goal.output_per_s = 5000;
  const auto e = estimate_with(1, 0.025, 4000);
  const auto all = asked_bounds(s, e);
  REQUIRE(all.size() == 3);
  CHECK(to_string(all[0]) == "first token 2 s at most: kept (1 s)");
  CHECK(to_string(all[1]) == "next tokens 20 ms at most: missed (25 ms)");
  CHECK(to_string(all[2]) == "5,000 tokens/s at least: missed (4,000)");
  CHECK(worst_excess(s, e) == doctest::Approx(1.25));
  CHECK_FALSE(keeps(e, s.serving.bound));
}

TEST_CASE("What is overloaded keeps no bound on a time") {
  auto s = served::usual();
  s.serving.concurrency = 0;
  s.serving.arrival_rate = 30;
  s.serving.bound.ttft = Seconds(2);
  auto e = estimate_with(1, 0.01, 4000);
  e.saturated = true;
  e.ttft.mean = costmodel::without_end;
  e.capacity = 10;
  CHECK(to_string(asked_bounds(s, e)[0]) ==
        "first token 2 s at most: missed (overloaded, so it grows without end)");
  CHECK(worst_excess(s, e) == doctest::Approx(3));
}
