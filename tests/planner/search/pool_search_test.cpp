#include "planner/search/pool_search.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "costmodel/serving/serving_estimate.hpp"
#include "tests/costmodel/serving/support/served.hpp"

using namespace planner;

namespace {

costmodel::ServingScenario pooled(const std::string& more, const char* plan = "{}") {
  return served::scenario(
      "input_tokens: 512, output_tokens: 128, max_num_batched_tokens: 8192, " + more, "llama-2-7b",
      "dgx-h100", 4, plan);
}

PoolSearch found_in(const costmodel::ServingScenario& s) {
  PricedSteps steps(s);
  return search_pools(s, steps);
}

}  // namespace

TEST_CASE("The best pair of pools is that of trying all of them") {
  for (const std::string load : {"concurrency: 64", "arrival_rate: 20", "requests: 100",
                                 "concurrency: 64, latency_bound: "
                                 "{tpot_s: 0.012}"}) {
    const auto s = pooled(load + ", max_num_seqs: 64");
    const bool fewer = may_take_fewer(s);
    double most = 0;
    std::size_t keep = 0;
    const auto sizes = instance_sizes(s, 3, true);
    for (const auto& prompts : sizes) {
      for (const auto& tokens : sizes) {
        auto one = s;
        one.plan.disaggregation = costmodel::Disaggregation{prompts, tokens};
        const auto idle = 4 - one.plan.disaggregation->devices();
        if (idle < 0) continue;
        if (!fewer && idle >= std::min(prompts.replica(), tokens.replica())) continue;
        const auto e = disaggregated_estimate(one, false);
        if (!keeps(e, s.serving.bound)) continue;
        ++keep;
        most = std::max(most, e.per_device());
      }
    }
    CAPTURE(load);
    const PoolSearch found = found_in(s);
    CHECK(found.keep == keep);
    REQUIRE_FALSE(found.best.empty());
    CHECK(disaggregated_estimate(with_choice(s, found.best.front()), false).per_device() ==
          doctest::Approx(most));
  }
}

TEST_CASE("The extremes are the shortest latencies of all pairs") {
  const auto s = pooled("concurrency: 64, max_num_seqs: 64, latency_bound: {tpot_s: 1 ms}");
  const PoolSearch found = found_in(s);
  CHECK(found.best.empty());
  CHECK(found.keep == 0);
  REQUIRE(found.extremes.size() == 4);
  const auto tpot = [&](const ServingChoice& choice) {
    return disaggregated_estimate(with_choice(s, choice), false).tpot.mean;
  };
  for (const auto& other : found.extremes) CHECK(tpot(other) >= tpot(found.extremes[1]));
}

TEST_CASE("Pools that the plan says are taken as they are, or refused") {
  const auto s =
      pooled("concurrency: 64", "{disaggregation: {prefill: {tp: 2}, decode: {tp: 1, dp: 1}}}");
  const PoolSearch found = found_in(s);
  REQUIRE_FALSE(found.best.empty());
  CHECK(*found.best.front().apart == *s.plan.disaggregation);
  CHECK(serving_space(s).empty());
  auto many = s;
  many.plan.disaggregation->decode.dp = 3;
  CHECK_THROWS_WITH_AS(require_pools(many), doctest::Contains("5 devices of 4"),
                       costmodel::ConfigError);
}

TEST_CASE("Nothing is tried where sizes are written, none is asked, or one device is there") {
  CHECK(found_in(pooled("concurrency: 8", "{tp: 1}")).choices == 0);
  CHECK(found_in(pooled("concurrency: 8", "{disaggregation: none}")).choices == 0);
  CHECK(found_in(pooled("concurrency: 8, decode_only: true")).choices == 0);
  auto one = pooled("concurrency: 8");
  one.cluster.devices = 1;
  CHECK(found_in(one).choices == 0);
}
