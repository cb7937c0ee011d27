// A plan as the list of its pipelines, and a pipeline as the list of its stages.
#include "costmodel/plan/pipeline.hpp"

#include <doctest/doctest.h>

#include "costmodel/plan/replica_groups.hpp"
#include "costmodel/plan/stage_plan.hpp"
#include "tests/costmodel/support/scenarios.hpp"

namespace pipeline_test {

using namespace costmodel;

namespace {

ParallelPlan even_plan() {
  ParallelPlan plan;
  plan.tp = 2;
  plan.pp = 3;
  plan.dp = 4;
  plan.micro_batch = 2;
  plan.zero = 1;
  return plan;
}

// 4 x 1 x 3 and 2 x 2 x 6 sequences.
ParallelPlan plan_of_two() {
  ParallelPlan plan;
  plan.replica_groups = {{"h100", 1, 2, 4, 1, 3, {}, 0}, {"a100", 2, 1, 2, 2, 6, {}, 1}};
  join_replicas(plan);
  return plan;
}

}  // namespace

TEST_CASE("a plan that lists nothing is one pipeline on the entire cluster, all stages alike") {
  const ParallelPlan plan = even_plan();
  CHECK(plan.even());
  CHECK(plan.different_stages() == 1);
  const auto all = pipelines_of(plan, 48);
  REQUIRE(all.size() == 1);
  CHECK(all.front().plan == plan);
  CHECK(all.front().micro_batches == 6);
  CHECK(all.front().sequences() == 48);
  CHECK(!all.front().on);
  std::int64_t devices = 0;
  for (int k = 0; k < plan.pp; ++k) {
    CHECK(stage_plan(plan, k) == plan);
    devices += plan.stage(k).devices();
  }
  CHECK(devices == plan.devices());
}

TEST_CASE("stages that are listed have their own sizes, and add up to the plan's devices") {
  ParallelPlan plan = even_plan();
  StagePlan wide;
  wide.tp = 4;
  wide.dp = 2;
  wide.cp = 2;
  StagePlan narrow;
  narrow.dp = 8;
  plan.pp = 2;
  plan.stages = {wide, narrow};
  CHECK(!plan.even());
  CHECK(plan.different_stages() == 2);
  CHECK(plan.stage(0) == wide);
  CHECK(plan.devices() == 16 + 8);
  CHECK(stage_plan(plan, 1).micro_batch == 1);  // 4 x 2 sequences over 8 replicas
  CHECK(pipelines_of(plan, 48).size() == 1);
}

TEST_CASE("groups of replicas are a pipeline each, numbered one after the other") {
  const ParallelPlan plan = plan_of_two();
  const Scenario s = scenarios::read("model: gpt2\n" + scenarios::mixed(8, 4) +
                                     "training: {global_batch: 36, sequence: 1024}\n");
  const auto all = pipelines_of(plan, 36);
  REQUIRE(all.size() == 2);
  CHECK(plan.pipelines() == 2);
  CHECK(all[1].plan.even());
  CHECK(all[1].plan.tp == 2);
  CHECK(all[1].first_rank == 8);
  CHECK(all[1].first_stage == 2);
  CHECK(all[1].first_sequence == 12);
  CHECK(all[0].plan.devices() + all[1].plan.devices() == plan.devices());
  CHECK(&cluster_of(all[1], s.cluster) == &s.cluster.groups[1]);
  CHECK(&pipeline_of_rank(all, 7) == all.data());
  CHECK(&pipeline_of_rank(all, 8) == all.data() + 1);
  CHECK(&pipeline_of_stage(all, 2) == all.data() + 1);
}

TEST_CASE("one group of replicas is the one pipeline of a plan that lists nothing") {
  ParallelPlan listed = even_plan();
  listed.replica_groups = {{"h100", 2, 3, 4, 2, 6, {}, 1}};
  join_replicas(listed);
  const auto all = pipelines_of(listed, 48);
  REQUIRE(all.size() == 1);
  CHECK(all.front().plan == even_plan());
  CHECK(all.front().micro_batches == 6);
  CHECK(all.front().on == std::optional<std::size_t>(0));
}

}  // namespace pipeline_test
