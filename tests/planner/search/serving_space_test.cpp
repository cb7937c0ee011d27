#include "planner/search/serving_space.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/costmodel/serving/support/served.hpp"

using namespace planner;

TEST_CASE("Counts are all up to 32, then eighths between powers of two, and the last") {
  CHECK(counts_up_to(0).empty());
  CHECK(counts_up_to(3) == std::vector{1, 2, 3});
  const auto many = counts_up_to(100);
  CHECK(std::is_sorted(many.begin(), many.end()));
  CHECK(std::find(many.begin(), many.end(), 31) != many.end());
  CHECK(std::find(many.begin(), many.end(), 36) != many.end());
  CHECK(std::find(many.begin(), many.end(), 37) == many.end());
  CHECK(many.back() == 100);
  CHECK(counts_up_to(65'536).size() < 150);
}

TEST_CASE("A budget pays for whole devices, to the last bit") {
  auto s = served::usual();
  CHECK(affordable_devices(s) == 8);
  s.cluster.operation.usd_per_device_hour = 0.1;
  s.serving.goal.usd_per_hour = 0.3;  // 0.3 / 0.1 is 2.9999999999999996
  CHECK(affordable_devices(s) == 3);
  s.serving.goal.usd_per_hour = 1e12;
  CHECK(affordable_devices(s) == 8);
}

TEST_CASE("Fewer replicas than there is room for are tried only where they may be the answer") {
  auto s = served::scenario(
      "input_tokens: 512, output_tokens: 128, concurrency: 32, max_num_seqs: 64, "
      "max_num_batched_tokens: 2048",
      "llama-2-7b", "dgx-h100", 8, "{tp: 1, pp: 1}");
  REQUIRE(serving_space(s).size() == 1);
  CHECK(serving_space(s).front().sizes.dp == 8);
  s.serving.goal.output_per_s = 100;
  CHECK(serving_space(s).size() == 8);
}

TEST_CASE("Merit: fewest devices for a target, most tokens for a budget, else tokens a device") {
  const costmodel::ServingGoal target{100, 0, 0}, budget{0, 50, 0}, none;
  CHECK(merit_of(target, 100, 2, 0.1) > merit_of(target, 400, 3, 0.1));
  CHECK(merit_of(target, 200, 2, 0.1) > merit_of(target, 100, 2, 0.1));
  CHECK(merit_of(budget, 400, 3, 0.1) > merit_of(budget, 300, 2, 0.1));
  CHECK(merit_of(none, 300, 2, 0.1) > merit_of(none, 400, 3, 0.1));
  CHECK(merit_of(none, 300, 2, 0.1) > merit_of(none, 300, 2, 0.2));
}

TEST_CASE("A choice with prompts apart is written into the plan") {
  ServingChoice choice;
  choice.sizes = {2, 1, 1, 1};
  choice.apart = costmodel::Disaggregation{{1, 1, 1, 4}, choice.sizes};
  choice.max_num_seqs = 64;
  choice.max_num_batched_tokens = 2048;
  const auto s = with_choice(served::usual(), choice);
  REQUIRE(s.plan.disaggregation);
  CHECK(s.plan.disaggregation->devices() == 6);
  CHECK(s.serving.limits.max_num_seqs == 64);
  choice.apart.reset();
  CHECK_FALSE(with_choice(s, choice).plan.disaggregation);
}
