#include "planner/diagnosis/serving_remedies.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/costmodel/serving/support/served.hpp"

using namespace planner;

namespace {

std::vector<std::string> remedies_of(const std::string& serving, double price = 0) {
  auto s = served::scenario("input_tokens: 512, output_tokens: 128, concurrency: 64, " + serving,
                            "llama-2-7b", "dgx-h100", 4, "{}");
  s.cluster.operation.usd_per_device_hour = price;
  return serving_remedies(s, search_serving(s, 1));
}

bool says(const std::vector<std::string>& all, const std::string& words) {
  return std::any_of(all.begin(), all.end(),
                     [&](const auto& line) { return line.find(words) != std::string::npos; });
}

}  // namespace

TEST_CASE("A target out of reach: what is the most, and what would give more") {
  const auto all = remedies_of("throughput_target: 1000000");
  CHECK(says(all, "The most tokens/s are "));
  CHECK_FALSE(says(all, "latency bound"));
  const auto bound = remedies_of("throughput_target: 1000000, latency_bound: {tpot_s: 1}");
  CHECK(says(bound, "The most tokens/s that keep the latency bound are "));
  CHECK(says(all, "of 1,000,000 wanted"));
  CHECK(says(all, "--set serving.concurrency=N (64 now)"));
  CHECK(says(all, "--set cluster.devices=N (4 now)"));
}

TEST_CASE("Sizes that go with no number of the devices are named, not the memory") {
  const auto s = served::scenario("input_tokens: 512, output_tokens: 128, concurrency: 4",
                                  "llama-2-7b", "dgx-h100", 4, "{tp: 1, dp: 8}");
  const auto all = serving_remedies(s, search_serving(s, 1));
  REQUIRE(all.size() == 1);
  CHECK(all.front().find("goes with no sizes on 4 devices") != std::string::npos);
}

TEST_CASE("Nothing fits: what the weights take") {
  auto s = served::scenario("input_tokens: 512, output_tokens: 128, concurrency: 4",
                            "llama-3.1-405b", "dgx-h100", 2, "{}");
  const auto all = serving_remedies(s, search_serving(s, 1));
  CHECK(says(all, "No plan leaves room for one request: on tp 2 the bf16 weights take "));
  CHECK(says(all, "--set cluster.devices=N"));
}

TEST_CASE("A request of the greatest length that does not fit: the length that does") {
  costmodel::ServingMemory memory;
  memory.cache = memory.token = costmodel::Bytes(1 << 20);
  memory.cache = memory.cache * 4096;
  memory.tokens = 4096;
  CHECK(length_remedy(memory).empty());
  memory.longest = 8192;
  CHECK(length_remedy(memory) ==
        "The engine does not start: a request of max_model_len 8,192 needs 8 GiB of keys and "
        "values, and 4 GiB are left: --set serving.max_model_len=4096, or less.");
  memory.tokens = 0;
  CHECK(length_remedy(memory).empty());
}

TEST_CASE("A price out of reach: the cheapest there is, which is then kept") {
  auto s = served::scenario("input_tokens: 512, output_tokens: 128, concurrency: 64", "llama-2-7b",
                            "dgx-h100", 4, "{}");
  s.cluster.operation.usd_per_device_hour = 2;
  s.serving.goal.usd_per_million = 1e-3;
  const auto all = serving_remedies(s, search_serving(s, 1));
  CHECK(says(all, "The cheapest million tokens cost "));
  const std::string& line = all.front();
  const auto at = line.find("usd_per_million_tokens=") + 23;
  s.serving.goal.usd_per_million = std::stod(line.substr(at));
  CHECK_FALSE(search_serving(s, 1).best.empty());
}

TEST_CASE(
    "The shortest time of any plan is that of one request at a time, and is kept when asked") {
  auto s = served::scenario(
      "input_tokens: 512, output_tokens: 128, concurrency: 64, latency_bound: {tpot_s: 3 ms}",
      "llama-2-7b", "dgx-h100", 4, "{}");
  const std::string line = serving_remedies(s, search_serving(s, 1)).front();
  CHECK(line.find("The shortest time a token of any plan is ") == 0);
  CHECK(line.find("with batches of 1:") != std::string::npos);
  s.serving.bound.tpot = costmodel::Seconds(std::stod(line.substr(line.find("tpot_s=") + 7)));
  const auto found = search_serving(s, 1);
  REQUIRE_FALSE(found.best.empty());
  CHECK(found.best.front().estimate.tpot.mean <= s.serving.bound.tpot.value);
}

TEST_CASE("A budget that pays for a part says what pays for all") {
  auto s = served::scenario(
      "input_tokens: 512, output_tokens: 128, concurrency: 64, latency_bound: {ttft_s: 1 ms}",
      "llama-2-7b", "dgx-h100", 4, "{}");
  s.cluster.operation.usd_per_device_hour = 2;
  s.serving.goal.usd_per_hour = 4;
  const auto all = serving_remedies(s, search_serving(s, 1));
  CHECK(says(all, "The budget pays for 2 of 4 devices: --set serving.budget.usd_per_hour=8"));
  CHECK(says(all, "The shortest first token of any plan is "));
}

TEST_CASE("A budget below the smallest replica says what that costs, which is then enough") {
  auto s = served::scenario("input_tokens: 512, output_tokens: 128, concurrency: 4", "llama-2-70b",
                            "dgx-h100", 8, "{}");
  s.cluster.operation.usd_per_device_hour = 2;
  s.serving.goal.usd_per_hour = 3;
  const auto all = serving_remedies(s, search_serving(s, 1));
  CHECK(says(all,
             "The budget pays for 1 of 8 devices, and the smallest replica takes 2: --set "
             "serving.budget.usd_per_hour=4 "));
  CHECK_FALSE(says(all, "cluster.devices=N"));
  s.serving.goal.usd_per_hour = 4;
  CHECK_FALSE(search_serving(s, 1).best.empty());
}

TEST_CASE("The shortest first token that is advised is one that a plan then keeps") {
  auto s = served::scenario(
      "input_tokens: 1024, output_tokens: 256, concurrency: 64, latency_bound: {ttft_s: 50 ms}",
      "llama-2-7b", "dgx-h100", 1, "{}");
  const auto all = serving_remedies(s, search_serving(s, 1));
  REQUIRE(says(all, "The shortest first token of any plan is "));
  const std::string& line = all.front();
  s.serving.bound.ttft = costmodel::Seconds(std::stod(line.substr(line.find("ttft_s=") + 7)));
  CHECK_FALSE(search_serving(s, 1).best.empty());
}

TEST_CASE("Of a plan that is overloaded no latency is the shortest") {
  const auto s = served::scenario(
      "input_tokens: 100, output_tokens: 100, arrival_rate: 400, latency_bound: {ttft_s: 0.05}",
      "llama-3-8b", "dgx-h100", 1, "{}");
  const auto found = search_serving(s, 1);
  REQUIRE(found.best.empty());
  const auto all = serving_remedies(s, found);
  CHECK(all.front().find("No plan answers 400 requests a second") == 0);
  for (const auto& line : all) CHECK(line.find("The shortest first token") == std::string::npos);
}

TEST_CASE("Two bounds that no plan comes near: what is advised for both is then kept") {
  const auto with = [](double first, double next) {
    auto s = served::scenario("input_tokens: 4096, output_tokens: 256, concurrency: 16",
                              "llama-3.1-70b", "dgx-h100", 8, "{}");
    s.serving.bound.ttft = costmodel::Seconds(first);
    s.serving.bound.tpot = costmodel::Seconds(next);
    return s;
  };
  const auto tight = with(0.05, 0.009);
  const auto all = serving_remedies(tight, search_serving(tight, 1));
  CHECK(says(all, "The shortest first token of any plan is "));
  const auto advice = std::find_if(all.begin(), all.end(), [](const std::string& line) {
    return line.starts_with("Nearest to all of them is ");
  });
  REQUIRE(advice != all.end());
  const auto of = [&](const std::string& key) {
    const std::string set = "--set serving.latency_bound." + key + "=";
    REQUIRE(advice->find(set) != std::string::npos);
    return std::stod(advice->substr(advice->find(set) + set.size()));
  };
  CHECK_FALSE(search_serving(with(of("ttft_s"), of("tpot_s")), 1).best.empty());
}
