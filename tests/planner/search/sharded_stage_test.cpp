#include "planner/search/sharded_stage.hpp"

#include <doctest/doctest.h>

#include "costmodel/estimate/evaluator.hpp"
#include "planner/report/sharding_report.hpp"
#include "tests/costmodel/support/scenarios.hpp"

namespace sharded_stage_test {

using fixtures::contains;

namespace {

planner::ShardedStage sharded(const std::string& stack, const std::string& plan) {
  const auto s = scenarios::read(
      "model: {kind: gpt, layers: 4, hidden: 8192, heads: 64, vocab: 51200, max_positions: 2048}\n"
      "cluster: {base: dgx-a100, devices: 8}\ntraining: {global_batch: 16, sequence: 2048, "
      "stack: " +
      stack + "}\nplan: {" + plan + "}\n");
  costmodel::Evaluator evaluator(s.model, s.cluster, s.training);
  auto found = planner::shard_plan(s, evaluator.estimate(resolve_plan(s)), evaluator);
  if (found.estimate)  // its seconds are the iteration's
    CHECK(found.estimate->iteration == evaluator.iteration_time(found.as_plan->plan));
  return found;
}

}  // namespace

TEST_CASE("a sharding is told as a plan and priced as an iteration") {
  const auto found = sharded("megatron-core-2026", "tp: 8, pp: 1, micro_batch: 1");
  REQUIRE(found.as_plan);
  CHECK(found.as_plan->plan.tp == 8);
  CHECK(found.as_plan->plan.sequence_parallel);  // what is scattered can be hidden
  const auto lines = as_plan_sentences(found);
  CHECK(contains(lines.front(), "As a plan it is t 8"));
}

TEST_CASE("what the scenario fixes stays, and what its stack lacks is refused with the reason") {
  const auto fixed =
      sharded("megatron-core-2026", "tp: 8, pp: 1, micro_batch: 1, sequence_parallel: false");
  REQUIRE(fixed.as_plan);
  CHECK_FALSE(fixed.as_plan->plan.sequence_parallel);
  REQUIRE(fixed.refused);
  CHECK(fixed.reason == "the scenario's plan says otherwise");
  CHECK_FALSE(fixed.better);
  const auto old = sharded("megatron-2021", "tp: 8, pp: 1, micro_batch: 1");
  REQUIRE(old.refused);
  CHECK(contains(old.reason, "megatron-2021"));
  CHECK(contains(as_plan_sentences(old).front(), "which cannot be"));
}

}  // namespace sharded_stage_test
