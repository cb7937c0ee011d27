#include "planner/search/serving_search.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

#include "planner/diagnosis/serving_remedies.hpp"
#include "tests/costmodel/serving/support/served.hpp"

using namespace planner;

namespace {
costmodel::ServingScenario open_scenario(const std::string& more, const char* model = "llama-2-7b",
                                         int devices = 8, const char* plan = "{}") {
  return served::scenario("input_tokens: 512, output_tokens: 128, " + more, model, "dgx-h100",
                          devices, plan);
}
}  // namespace

TEST_CASE("The space holds each choice once, and only what the rules allow") {
  const auto space = serving_space(open_scenario("concurrency: 64", "mixtral-8x7b"));
  CHECK(space.size() > 100);
  for (std::size_t i = 0; i < space.size(); ++i) {
    CHECK(std::count(space.begin(), space.end(), space[i]) == 1);
    CHECK(space[i].sizes.devices() <= 8);
  }
  const auto fixed =
      serving_space(open_scenario("concurrency: 64, max_num_seqs: 64, max_num_batched_tokens: 2048",
                                  "llama-2-7b", 8, "{tp: 2, pp: 1, dp: 4}"));
  REQUIRE(fixed.size() == 1);
  CHECK(fixed.front().max_num_seqs == 64);
}

TEST_CASE("The best plan is that of trying all of them") {
  auto s = open_scenario("concurrency: 128, latency_bound: {tpot_s: 0.02}");
  s.plan.together = true;
  const auto found = search_serving(s, 3);
  REQUIRE_FALSE(found.best.empty());
  double most = 0;
  std::size_t keep = 0;
  for (const auto& choice : serving_space(s)) {
    const auto e = quick_estimate(with_choice(s, choice), choice.sizes);
    if (!keeps(e, s.serving.bound)) continue;
    ++keep;
    most = std::max(most, e.per_device());
  }
  CHECK(found.keep == keep);
  const auto best =
      quick_estimate(with_choice(s, found.best.front().choice), found.best.front().choice.sizes);
  CHECK(best.per_device() == most);
}

TEST_CASE("Weights on a host whose link is not known are refused, not priced as infinitely slow") {
  auto s = open_scenario("concurrency: 64, cpu_offload_bytes: 4e9");
  s.cluster.device.host_bandwidth = costmodel::BytesPerSecond(0);
  CHECK_THROWS_WITH_AS(search_serving(s, 1), doctest::Contains("the device says no host bandwidth"),
                       costmodel::ConfigError);
}

TEST_CASE("No plan of the front is worse in both") {
  const auto found = search_serving(open_scenario("concurrency: 256", "llama-2-70b"), 2);
  REQUIRE(found.front.size() > 1);
  for (std::size_t i = 1; i < found.front.size(); ++i) {
    CHECK(found.front[i].estimate.tpot.mean > found.front[i - 1].estimate.tpot.mean);
    CHECK(found.front[i].estimate.per_device() > found.front[i - 1].estimate.per_device());
  }
}

TEST_CASE("A bound is kept by a larger tp, and without a plan there is a remedy") {
  const auto quick =
      open_scenario("concurrency: 16, latency_bound: {tpot_s: 0.014}", "llama-2-70b");
  const auto found = search_serving(quick, 1);
  REQUIRE_FALSE(found.best.empty());
  CHECK(found.best.front().choice.sizes.tp >= 4);
  const auto never =
      open_scenario("concurrency: 16, latency_bound: {tpot_s: 0.006}", "llama-2-70b");
  const auto none = search_serving(never, 1);
  CHECK(none.best.empty());
  CHECK(serving_remedies(never, none).front().find("The shortest time a token") == 0);
  CHECK_THROWS_WITH_AS(
      search_serving(open_scenario("concurrency: 1, latency_bound: {tpot_s: 0.0001}"), 1),
      doctest::Contains("below one pass"), costmodel::ConfigError);
}

TEST_CASE("With an arrival rate the fewest devices that keep up win") {
  const auto found = search_serving(open_scenario("arrival_rate: 2"), 1);
  REQUIRE_FALSE(found.best.empty());
  CHECK(found.best.front().choice.sizes.devices() == 1);
  const auto flood = open_scenario("arrival_rate: 100000");
  const auto flooded = search_serving(flood, 1);
  CHECK(flooded.best.empty());
  CHECK(serving_remedies(flood, flooded).front().find("No plan answers") == 0);
}

TEST_CASE("Of an open load the answer's time decides, in which a wait for a place counts") {
  const auto s = open_scenario("arrival_rate: 20", "llama-2-7b", 8, "{tp: 1, dp: 8}");
  const auto found = search_serving(s, 5);
  REQUIRE_FALSE(found.best.empty());
  const auto usual = planned_estimate(s);
  CHECK(found.best.front().estimate.output_per_s >= usual.output_per_s * (1 - 1e-9));
  CHECK(found.best.front().estimate.e2e.mean <= usual.e2e.mean * (1 + 1e-9));
}

TEST_CASE("No plan is ranked whose engine does not start, and a shorter request starts it") {
  auto s = served::scenario("input_tokens: 1024, output_tokens: 512, requests: 1000",
                            "deepseek-v2-lite", "pcie-8x-rtx-4090", 2, "{}");
  s.serving.engine.holds_longest = true;
  s.serving.length_usual = true;
  const auto found = search_serving(s, 5);
  REQUIRE_FALSE(found.best.empty());
  CHECK(found.length_asked);
  CHECK(best_served(s, found).serving.max_model_len == 1536);
  for (const auto& candidate : found.best) CHECK(candidate.estimate.output_per_s > 0);
  s.serving.length_usual = false;  // written: kept
  const auto kept = search_serving(s, 5);
  CHECK_FALSE(kept.length_asked);
  for (const auto& candidate : kept.best) CHECK(candidate.estimate.memory.fits());
  CHECK(found.best.front().estimate.output_per_s > kept.best.front().estimate.output_per_s);
}

TEST_CASE("Formats are chosen only where the scenario leaves them open") {
  const auto found =
      search_serving(open_scenario("concurrency: 64, weights: auto", "llama-2-70b", 1), 1);
  REQUIRE_FALSE(found.best.empty());
  CHECK(bytes_of(found.best.front().choice.weights) <= 1);
  const auto one_device = open_scenario("concurrency: 64", "llama-2-70b", 1);
  const auto large = search_serving(one_device, 1);
  CHECK(large.fit == 0);
  CHECK(serving_remedies(one_device, large).size() == 2);
}

TEST_CASE("A mixture of experts is planned on sixteen devices") {
  const auto s =
      served::scenario("input_tokens: 1024, output_tokens: 512, concurrency: 512, weights: auto",
                       "deepseek-v3", "dgx-h100", 16, "{}");
  const auto found = search_serving(s, 5);
  REQUIRE_FALSE(found.best.empty());
  // 671e9 parameters in 16 bits are more than the 16 x 80 GB.
  for (const auto& candidate : found.best) CHECK(bytes_of(candidate.choice.weights) <= 1);
}

TEST_CASE("Prompts on devices of their own are the answer where they are better when simulated") {
  const auto s = open_scenario(
      "concurrency: 64, weights: fp8, latency_bound: {tpot_s: 0.022, ttft_s: 1}, max_num_seqs: 64, "
      "max_num_batched_tokens: 8192",
      "llama-2-70b", 8);
  const auto found = search_serving(s, 2);
  REQUIRE(found.apart);
  CHECK(found.apart_choices > 0);
  REQUIRE_FALSE(found.best.empty());
  const bool first = found.best.front().choice.apart.has_value();
  if (found.together) {
    const auto& together = found.together->estimate;
    CHECK(first == (found.apart->estimate.per_device() > 1.01 * together.per_device()));
  } else {
    CHECK(first);
  }
  auto none = s;
  none.plan.together = true;
  const auto without = search_serving(none, 2);
  CHECK_FALSE(without.apart);
  CHECK(without.apart_choices == 0);
}

TEST_CASE("A target is reached on the fewest devices, and a budget pays for the most tokens") {
  auto s = open_scenario("concurrency: 256, max_num_seqs: 256, max_num_batched_tokens: 8192");
  s.serving.goal.output_per_s = 6000;
  const auto few = search_serving(s, 1);
  REQUIRE_FALSE(few.best.empty());
  const auto& plan = few.best.front();
  for (const auto& choice : serving_space(s)) {
    const auto e = quick_estimate(with_choice(s, choice), choice.sizes);
    if (e.fits && e.devices < plan.estimate.devices) CHECK(e.output_per_s < 6000);
  }
  s.serving.goal = {};
  s.serving.goal.usd_per_hour = 12;
  s.cluster.operation.usd_per_device_hour = 4;
  CHECK(affordable_devices(s) == 3);
  const auto paid = search_serving(s, 1);
  REQUIRE_FALSE(paid.best.empty());
  CHECK(paid.best.front().estimate.usd_per_hour <= 12);
  for (const auto& choice : serving_space(s)) {
    CHECK(choice.sizes.devices() <= 3);
    const auto e = quick_estimate(with_choice(s, choice), choice.sizes);
    const auto& first = paid.first.front();
    const auto best = quick_estimate(with_choice(s, first), first.sizes);
    CHECK(e.output_per_s <= best.output_per_s);
  }
}

TEST_CASE("What is answered keeps the bound by what is reported of it, or nothing is answered") {
  for (const char* bound : {"{ttft_s: 0.05}", "{ttft_s: 0.1}", "{ttft_s: 0.2, tpot_s: 0.03}",
                            "{ttft_s: 0.6}", "{e2e_s: 4}"}) {
    for (const char* load : {"concurrency: 64", "concurrency: 250", "arrival_rate: 4"}) {
      for (const int devices : {1, 8}) {
        const auto s =
            open_scenario(std::string(load) + ", latency_bound: " + bound, "llama-2-7b", devices);
        const auto found = search_serving(s, 3);
        CAPTURE(bound);
        CAPTURE(load);
        CAPTURE(devices);
        for (const ServingCandidate& c : found.best) {
          CHECK(c.keeps);
          CHECK(keeps(planned_estimate(with_choice(s, c.choice)), s.serving.bound));
        }
        if (found.best.empty()) CHECK_FALSE(serving_remedies(s, found).empty());
        for (const ServingCandidate& c : found.nearest) CHECK_FALSE(c.keeps);
      }
    }
  }
}

TEST_CASE(
    "What misses the bound in closed form by little is simulated before nothing is answered") {
  auto s = open_scenario("concurrency: 16, max_num_seqs: 64, max_num_batched_tokens: 8192",
                         "llama-2-7b", 1, "{tp: 1, pp: 1, ep: 1, dp: 1}");
  const auto simulated = planned_estimate(s);
  const auto closed = quick_estimate(s, sizes_of(s));
  REQUIRE(simulated.tpot.mean != closed.tpot.mean);
  s.serving.bound.tpot = costmodel::Seconds(std::min(simulated.tpot.mean, closed.tpot.mean));
  CHECK(search_serving(s, 1).best.empty() == (simulated.tpot.mean > closed.tpot.mean));
  s.serving.bound.tpot = costmodel::Seconds(simulated.tpot.mean);
  CHECK_FALSE(search_serving(s, 1).best.empty());
}

TEST_CASE("No plan of requests at once is worse than its sizes with the engine's own limits") {
  auto s = open_scenario("requests: 128", "mistral-7b");
  s.serving.input.mean = 256;
  const auto found = search_serving(s, 1);
  REQUIRE_FALSE(found.best.empty());
  const double best = found.best.front().estimate.per_device();
  for (const auto& sizes : instance_sizes(s, 8, false)) {
    const auto own = with_choice(s, usual_choice(s, sizes, s.serving.weights));
    CHECK(planned_estimate(own).per_device() <= best * 1.001);
  }
}

TEST_CASE("A target that the best plan without one reaches is reached") {
  for (const auto& [model, cluster, serving] :
       {std::tuple{"qwen3-30b-a3b", "dgx-h100",
                   "stack: sglang-0.5, input_tokens: 333, output_tokens: 16, concurrency: 1"},
        std::tuple{"llama-3-8b", "mi300x-8x",
                   "stack: vllm-0.9, input_tokens: 1024, output_tokens: 300, concurrency: 200, "
                   "max_model_len: auto"}}) {
    const auto read = [&](const std::string& more) {
      return read_serving(
          costmodel::parse_yaml(std::string("workload: inference\nmodel: ") + model +
                                    "\ncluster: {base: " + cluster + ", devices: 8}\nserving: {" +
                                    serving + more + "}\nplan: auto\n",
                                "served.yaml"),
          "served", costmodel::config_path({}));
    };
    const auto open = search_serving(read(""), 1);
    REQUIRE_FALSE(open.best.empty());
    const double most = open.best.front().estimate.output_per_s;
    const auto asked =
        search_serving(read(", throughput_target: " + std::to_string(0.99 * most)), 1);
    REQUIRE_FALSE(asked.best.empty());
    CHECK(asked.best.front().keeps);
    CHECK(asked.best.front().estimate.output_per_s >= 0.99 * most);
  }
}

TEST_CASE("A bound that a plan keeps is kept by the one that is found") {
  const auto scenario = [](const std::string& bound) {
    return served::scenario("input_tokens: 1000, output_tokens: 300, arrival_rate: 10" + bound,
                            "llama-3-70b", "dgx-h100", 32, "{}");
  };
  auto known = scenario("");
  known.plan = served::scenario("input_tokens: 1000, output_tokens: 300, arrival_rate: 10",
                                "llama-3-70b", "dgx-h100", 32,
                                "{tp: 8, pp: 1, dp: 3, disaggregation: {prefill: {tp: 4, pp: 1, "
                                "dp: 2}, decode: {tp: 8, pp: 1, dp: 3}}}")
                   .plan;
  const auto e = costmodel::planned_estimate(known);
  for (const auto& [key, value] :
       {std::pair{"e2e_s", e.e2e.mean}, {"tpot_s", e.tpot.mean}, {"ttft_s", e.ttft.mean}}) {
    CAPTURE(key);
    const auto s = scenario(fmt::format(", latency_bound: {{{}: {}}}", key, value * 1.001));
    const auto found = search_serving(s, 1);
    REQUIRE_FALSE(found.best.empty());
    CHECK(found.best.front().keeps);
  }
}

TEST_CASE("More requests in flight do not lower what the best plan answers") {
  const auto best = [](int requests) {
    const auto s = read_serving(
        costmodel::parse_yaml("workload: inference\nmodel: llama-3-70b\ncluster: {base: mi300x-8x, "
                              "devices: 1}\nserving: {stack: vllm-0.17, input_tokens: 333, "
                              "output_tokens: 300, concurrency: " +
                                  std::to_string(requests) + "}\nplan: auto\n",
                              "served.yaml"),
        "served", costmodel::config_path({}));
    return search_serving(s, 1).best.front().estimate.output_per_s;
  };
  CHECK(best(400) >= 0.999 * best(200));
}

TEST_CASE("Without chunked prefill vLLM's steps hold a prompt") {
  const auto s = served::scenario("input_tokens: 1024, output_tokens: 128, concurrency: 1",
                                  "llama-3-8b", "dgx-h100", 1, "{}");
  REQUIRE_FALSE(s.serving.limits.chunked_prefill);
  for (const auto& choice : serving_space(s)) CHECK(choice.max_num_batched_tokens >= 1024);
}
