#include "costmodel/plan/plan_features.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "costmodel/plan/parallel_plan.hpp"

namespace plan_features_test {

using namespace costmodel;

namespace {

bool has(const ParallelPlan& plan, PlanFeature feature) {
  return (features_of(plan) & bit_of(feature)) != 0;
}

}  // namespace

TEST_CASE("data, tensor and pipeline parallelism are no features") {
  ParallelPlan plan;
  plan.tp = 8;
  plan.pp = 4;
  plan.dp = 16;
  plan.zero = 1;
  plan.stage_layers = {8, 8, 8, 8};
  plan.recompute = {};
  CHECK(features_of(plan) == 0);
  CHECK(names_of(0).empty());
}

TEST_CASE("ZeRO 3 counts by itself, and in a pipeline") {
  ParallelPlan plan;
  plan.zero = 3;
  CHECK(features_of(plan) == bit_of(PlanFeature::zero_3));
  plan.pp = 2;
  CHECK(features_of(plan) ==
        (bit_of(PlanFeature::zero_3) | bit_of(PlanFeature::zero_3_in_pipeline)));
  CHECK(names_of(features_of(plan)) ==
        std::vector<std::string_view>{"ZeRO 3", "ZeRO 3 in a pipeline"});
}

TEST_CASE("each kind of recomputation is one") {
  ParallelPlan plan;
  plan.recompute = {Recomputation::selective, 0};
  CHECK(features_of(plan) == bit_of(PlanFeature::selective_recompute));
  plan.recompute.modules = bit_of(RecomputeModule::moe_act);
  CHECK(features_of(plan) == bit_of(PlanFeature::module_recompute));
  plan.recompute = {Recomputation::full, 3};
  CHECK(features_of(plan) == bit_of(PlanFeature::partial_recompute));
  plan.recompute.layers = 0;
  CHECK(features_of(plan) == bit_of(PlanFeature::full_recompute));
}

TEST_CASE("an exchange of experts is one only where there is an exchange") {
  ParallelPlan plan;
  plan.experts.overlap = true;
  CHECK_FALSE(has(plan, PlanFeature::expert_overlap));
  plan.ep = 8;
  CHECK(has(plan, PlanFeature::expert_overlap));
}

TEST_CASE("stages and replicas of own sizes have their own features") {
  ParallelPlan plan;
  plan.stages.resize(2);
  plan.stages[1].cp = 2;
  CHECK(has(plan, PlanFeature::own_sizes));
  CHECK(has(plan, PlanFeature::context_parallel));
  plan.stages.clear();
  plan.replica_groups.resize(2);
  plan.replica_groups[1].zero = 3;
  CHECK(has(plan, PlanFeature::zero_3));
}

TEST_CASE("each has a name of its own") {
  auto names = std::vector(plan_feature_names.begin(), plan_feature_names.end());
  std::ranges::sort(names);
  CHECK(std::ranges::adjacent_find(names) == names.end());
  CHECK(names_of(bit_of(PlanFeature::activations_in_host)).front() == plan_feature_names.back());
}

}  // namespace plan_features_test
