// A changed scenario becomes a remedy where something fits in it.
#include "planner/diagnosis/attempts.hpp"

#include <doctest/doctest.h>

#include <string>

#include "costmodel/estimate/evaluator.hpp"
#include "tests/costmodel/support/scenarios.hpp"

namespace attempts_test {

using costmodel::Scenario;
using planner::Attempts;
using planner::OtherStacks;
using scenarios::read;

namespace {

// gpt2-large on a V100, all of whose logits are kept in 32 bits.
Scenario with_micro_batch(int sequences) {
  return read(
      "model: gpt2-large\ncluster: {base: dgx-v100, devices: 1}\n"
      "training: {sequence: 1024, global_batch: 16, precision: fp16,\n"
      "  stack: {base: megatron-core-2026, attention: unfused}, loss: unfused}\n"
      "plan: {tp: 1, pp: 1, zero: 0, recompute: none, micro_batch: " +
      std::to_string(sequences) + "}\n");
}

}  // namespace

TEST_CASE("only what fits is a remedy, and its figures are those of the plan") {
  const Scenario asked = with_micro_batch(8);
  const OtherStacks none;
  const std::function<bool()> never;
  Attempts attempts{{}, never, none, asked.plan};
  CHECK_FALSE(planner::try_change(asked, "as it is", {}, attempts));
  CHECK(attempts.remedies.empty());
  const Scenario smaller = with_micro_batch(1);
  REQUIRE(planner::try_change(smaller, "one", {"plan.micro_batch=1"}, attempts));
  REQUIRE(attempts.remedies.size() == 1);
  const planner::Remedy& remedy = attempts.remedies.front();
  CHECK(remedy.what == "one");
  CHECK(remedy.settings == planner::Settings{"plan.micro_batch=1"});
  costmodel::Evaluator evaluator(smaller.model, smaller.cluster, smaller.training);
  const auto estimate = evaluator.estimate(costmodel::resolve_plan(smaller));
  CHECK(remedy.best.peak == estimate.peak);
  CHECK(remedy.device_time.value == doctest::Approx(estimate.iteration.value / (16 * 1024)));
  CHECK(remedy.probability > 0.5);
}

TEST_CASE("once it is stopped nothing more is tried") {
  const Scenario fits = with_micro_batch(1);
  const OtherStacks none;
  const std::function<bool()> at_once = [] { return true; };
  Attempts attempts{{}, at_once, none, fits.plan};
  CHECK_FALSE(planner::try_change(fits, "one", {}, attempts));
}

TEST_CASE("a batch that was assumed is set where the devices change") {
  Scenario s = with_micro_batch(1);
  s.training.assumed = {"global_batch 16, assumed"};
  const OtherStacks none;
  const std::function<bool()> never;
  Attempts attempts{{}, never, none, s.plan};
  REQUIRE(planner::try_change(s, "one device", {"cluster.devices=1"}, attempts));
  REQUIRE(planner::try_change(s, "one", {"plan.micro_batch=1"}, attempts));
  CHECK(attempts.remedies[0].settings ==
        planner::Settings{"cluster.devices=1", "training.global_batch=16"});
  CHECK(attempts.remedies[1].settings == planner::Settings{"plan.micro_batch=1"});
}

TEST_CASE("of several changes the quickest is recorded") {
  const Scenario s = with_micro_batch(1);
  const OtherStacks none;
  const std::function<bool()> never;
  Attempts attempts{{}, never, none, s.plan};
  auto quick = planner::best_plan_of(s, attempts);
  REQUIRE(quick.has_value());
  auto slow = quick;
  slow->iteration = slow->iteration * 2;
  planner::Quickest quickest;
  quickest.record_in(attempts);
  CHECK(attempts.remedies.empty());
  quickest.offer({}, "none", {}, s);
  quickest.offer(slow, "slow", {"a"}, s);
  quickest.offer(quick, "quick", {"b"}, s);
  quickest.offer(slow, "slow again", {"c"}, s);
  quickest.record_in(attempts);
  REQUIRE(attempts.remedies.size() == 1);
  CHECK(attempts.remedies.front().what == "quick");
  CHECK(attempts.remedies.front().settings == planner::Settings{"b"});
}

}  // namespace attempts_test
