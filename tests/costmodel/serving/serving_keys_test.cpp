#include "costmodel/serving/serving_keys.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "tests/costmodel/serving/support/served.hpp"

using namespace costmodel;
using doctest::Contains;

TEST_CASE("Every key of serving is described, once, and says what it may be") {
  std::set<std::string> names;
  for (const KeyText& key : serving_keys()) {
    CHECK_MESSAGE(names.insert(key.name).second, key.name);
    CHECK_FALSE(key.allowed.empty());
    CHECK_FALSE(key.help.empty());
  }
  for (const char* name :
       {"serving.stack", "serving.input_tokens", "serving.concurrency", "serving.weights",
        "serving.max_num_seqs", "serving.latency_bound.tpot_s", "serving.throughput_target",
        "serving.budget.usd_per_hour", "plan.disaggregation.prefill.tp"})
    CHECK_MESSAGE(names.count(name) == 1, name);
}

TEST_CASE("A target and a budget are read, and what they need is asked for") {
  const std::string load = "input_tokens: 512, output_tokens: 128, concurrency: 8";
  CHECK(served::scenario(load + ", throughput_target: 5000").serving.goal.output_per_s == 5000);
  const auto refused = [&](const std::string& more, const char* words) {
    CHECK_THROWS_WITH_AS(served::scenario(more), Contains(words), ConfigError);
  };
  refused(load + ", budget: {usd_per_hour: 5}", "the cluster has no price");
  refused(load + ", budget: {usd_per_hour: 5}", "served.yaml:4:");
  refused(load + ", budget: {euro: 5}", "euro");
  refused(load + ", throughput_target: -1", "throughput_target");
  refused("input_tokens: 512, output_tokens: 100, arrival_rate: 2, throughput_target: 500",
          "ask for 200");
}

TEST_CASE("A budget below the price of one device pays for none") {
  const auto priced = [](const std::string& budget) {
    return read_serving(
        parse_yaml("workload: inference\nmodel: llama-2-7b\ncluster: {base: dgx-h100, devices: 8, "
                   "price: {usd_per_device_hour: 2}}\nserving: {stack: vllm-0.6, input_tokens: 8, "
                   "output_tokens: 8, concurrency: 1, budget: " +
                       budget + "}\n",
                   "priced.yaml"),
        "priced", config_path({}));
  };
  CHECK(priced("{usd_per_hour: 4}").serving.goal.usd_per_hour == 4);
  CHECK_THROWS_WITH_AS(priced("{usd_per_hour: 1}"), Contains("pay for no device"), ConfigError);
}

TEST_CASE("Prompts apart are a map of both pools, or none") {
  CHECK(served::usual("{disaggregation: none}").plan.together);
  CHECK_FALSE(served::usual("{disaggregation: auto}").plan.together);
  const auto s = served::usual("{disaggregation: {prefill: {tp: 2}, decode: {dp: 3}}}");
  REQUIRE(s.plan.disaggregation);
  CHECK(s.plan.disaggregation->prefill.tp == 2);
  CHECK(s.plan.disaggregation->decode.dp == 3);
  CHECK_THROWS_WITH_AS(served::usual("{disaggregation: {prefill: {tp: 2}}}"), Contains("decode"),
                       ConfigError);
  CHECK_THROWS_AS(served::usual("{disaggregation: 5}"), ConfigError);
}
