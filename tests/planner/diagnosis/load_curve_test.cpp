#include "planner/diagnosis/load_curve.hpp"

#include <doctest/doctest.h>

#include "tests/costmodel/serving/support/served.hpp"

using namespace planner;

TEST_CASE("The curve of load rises in tokens and in latency") {
  const auto s = served::usual();
  const auto curve = load_curve(s, sizes_of(s));
  REQUIRE(curve.size() > 4);
  for (std::size_t i = 1; i < curve.size(); ++i) {
    CHECK(curve[i].output_per_s >= curve[i - 1].output_per_s);
    CHECK(curve[i].tpot >= curve[i - 1].tpot);
  }
}
