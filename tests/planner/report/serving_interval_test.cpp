#include "planner/report/serving_interval.hpp"

#include <doctest/doctest.h>

#include "tests/costmodel/serving/support/served.hpp"

using namespace planner;

TEST_CASE(
    "Of an open load the interval ends at what arrives, and begins where the plan may fall short") {
  auto s = served::usual();
  s.serving.concurrency = 0;
  s.serving.arrival_rate = 2;
  costmodel::ServingEstimate e;
  e.output_per_s = 256;
  e.capacity = 20;
  const auto calm = output_interval(s, e, {0.6, 1.6});
  CHECK(calm == std::array<double, 2>{256, 256});
  e.capacity = 2.5;
  const auto full = output_interval(s, e, {0.6, 1.6});
  CHECK(full[0] == doctest::Approx(192));
  CHECK(full[1] == 256);
}

TEST_CASE("Where nothing of a device was measured, the interval is said to be of others") {
  const auto s = served::usual();
  costmodel::ServingFit fit;
  CHECK(evidence_note(s, fit).empty());
  fit.factors["vllm"].fill(1.01);
  CHECK(evidence_note(s, fit).find("no measurement of h100-sxm5-80gb is among them") == 0);
  fit.factors["h100-sxm5-80gb"].fill(1.02);
  CHECK(evidence_note(s, fit).empty());
}
