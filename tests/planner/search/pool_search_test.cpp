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
    const auto best =
        std::ranges::find_if(found.near, [](const PricedChoice& pair) { return pair.excess <= 1; });
    REQUIRE(best != found.near.end());
    CHECK(disaggregated_estimate(with_choice(s, best->choice), false).per_device() ==
          doctest::Approx(most));
  }
}

TEST_CASE("The extremes are the shortest latencies of all pairs") {
  const auto s = pooled("concurrency: 64, max_num_seqs: 64, latency_bound: {tpot_s: 1 ms}");
  const PoolSearch found = found_in(s);
  CHECK(found.near.empty());
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
  REQUIRE_FALSE(found.near.empty());
  CHECK(*found.near.front().choice.apart == *s.plan.disaggregation);
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

TEST_CASE("What misses a bound by little in closed form is found where a simulation keeps it") {
  const char* text =
      "workload: inference\nmodel: llama-2-70b\ncluster: {base: dgx-h100, devices: 32}\n"
      "serving: {stack: vllm-0.9, input_tokens: 2000, output_tokens: 200, concurrency: 256, "
      "weights: fp8, latency_bound: {tpot_s: 0.0188, ttft_s: 2}}\n";
  const auto s = costmodel::read_serving(costmodel::parse_yaml(text, "pools.yaml"), "pools",
                                         costmodel::config_path({}));
  auto pools = s;
  pools.plan.disaggregation =
      costmodel::Disaggregation{{.tp = 2, .pp = 2, .dp = 4}, {.tp = 4, .pp = 1, .dp = 4}};
  pools.serving.limits.max_num_seqs = 64;
  const auto closed = disaggregated_estimate(pools, false), kept = planned_estimate(pools);
  REQUIRE_FALSE(keeps(closed, s.serving.bound));
  REQUIRE(keeps(kept, s.serving.bound));
  const auto found = search_serving(s, 1);
  REQUIRE_FALSE(found.best.empty());
  CHECK(found.best.front().estimate.per_device() >= kept.per_device() * 0.99);
}
