// The best plan of which published runs have had every feature: against all plans of the space, one
// by one.
#include "planner/search/measured_plan.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <optional>

#include "costmodel/estimate/evaluator.hpp"
#include "planner/search/search_space.hpp"
#include "tests/costmodel/support/scenarios.hpp"

namespace measured_plan_test {

using namespace costmodel;
using planner::Strategies;
using scenarios::read;

namespace {

constexpr PlanFeatures every = (1U << plan_feature_names.size()) - 1;

Scenario experts(const std::string& plan = "{}") {
  Scenario s = read(fmt::format(
      "model: {{kind: moe, layers: 8, hidden: 2048, heads: 16, kv_heads: 4, ffn_hidden: 5632, "
      "experts: 16, top_k: 2, vocab: 32000}}\ncluster: {{base: dgx-h100, devices: 16}}\n"
      "training: {{global_batch: 64, sequence: 4096, stack: megatron-core-2026}}\n"
      "search: {{simpler_within: 0}}\nplan: {}\n",
      plan));
  s.training.error_band.unmeasured = 0;
  return s;
}

Strategies searched(const Scenario& s) {
  Strategies all = run_strategies(s, planner::Reach::even, 1, {});
  planner::add_measured(all, s, {.reach = planner::Reach::even});
  return all;
}

// The least time of the plans without `none_has`, by trying every plan.
std::optional<Seconds> least_without(const Scenario& s, PlanFeatures none_has) {
  Evaluator evaluator(s.model, s.cluster, s.training);
  std::optional<Seconds> least;
  for (const auto& family : planner::enumerate(s).families) {
    for (const ParallelPlan& plan : planner::members(family, s)) {
      if ((features_of(plan) & none_has) != 0) continue;
      if (evaluator.cost(plan).peak > planner::memory_limit(s)) continue;
      const Seconds time = evaluator.iteration_time(plan);
      if (!least || time < *least) least = time;
    }
  }
  return least;
}

}  // namespace

TEST_CASE("nothing is reported where published runs have had all of the chosen plan") {
  const Strategies all = searched(experts());
  REQUIRE_FALSE(all.found.plans.empty());
  CHECK(all.unmeasured == 0);
  CHECK_FALSE(all.measured);
}

TEST_CASE("it is the fastest of the plans without those features") {
  Scenario s = experts();
  const PlanFeatures of_best =
      features_of(run_strategies(s, planner::Reach::even, 1, {}).found.plans.front().plan);
  REQUIRE(of_best != 0);  // else the case shows nothing
  for (const PlanFeatures none_has :
       {of_best, every, every & ~bit_of(PlanFeature::virtual_stages)}) {
    CAPTURE(none_has);
    s.training.error_band.unmeasured = none_has;
    const Strategies all = searched(s);
    CHECK(all.unmeasured == (of_best & none_has));
    REQUIRE(all.measured);
    CHECK((features_of(all.measured->plan) & none_has) == 0);
    CHECK(all.measured->iteration.value ==
          doctest::Approx(least_without(s, none_has)->value).epsilon(1e-9));
  }
}

TEST_CASE("what the scenario's plan fixes leaves none") {
  Scenario s = experts("{zero: 3}");
  s.training.error_band.unmeasured = bit_of(PlanFeature::zero_3);
  const Strategies all = searched(s);
  REQUIRE_FALSE(all.found.plans.empty());
  CHECK(all.unmeasured == bit_of(PlanFeature::zero_3));
  CHECK_FALSE(all.measured);
}

TEST_CASE("a space without a feature has no plan with it") {
  Scenario dense = read(
      "model: {kind: llama, layers: 8, hidden: 2048, heads: 16, kv_heads: 4, ffn_hidden: 5632, "
      "vocab: 32000}\ncluster: {base: dgx-h100, devices: 16}\n"
      "training: {global_batch: 64, sequence: 8192, stack: megatron-core-2026}\n"
      "search: {schedules: [1f1b, interleaved, zero-bubble-h1]}\n"
      "plan: {offload: auto, dp_replicate: auto}\n");
  const auto features_in = [](const Scenario& s) {
    PlanFeatures all = 0;
    for (const auto& family : planner::enumerate(s).families)
      for (const ParallelPlan& plan : planner::members(family, s)) all |= features_of(plan);
    return all;
  };
  PlanFeatures tried = 0;
  for (const Scenario& s : {experts("{offload: auto}"), dense}) {
    const PlanFeatures open = features_in(s);
    tried |= open;
    for (unsigned i = 0; i < plan_feature_names.size(); ++i) {
      const PlanFeatures one = 1U << i;
      if ((open & one) == 0) continue;
      CAPTURE(plan_feature_names[i]);
      const auto narrow = planner::without_features(s, one);
      REQUIRE(narrow);
      CHECK((features_in(*narrow) & one) == 0);
    }
  }
  for (const PlanFeature wanted :
       {PlanFeature::context_parallel, PlanFeature::expert_tensor, PlanFeature::virtual_stages,
        PlanFeature::zero_2, PlanFeature::zero_3, PlanFeature::shard_groups,
        PlanFeature::full_recompute, PlanFeature::partial_recompute, PlanFeature::states_in_host})
    CHECK((tried & bit_of(wanted)) != 0);
}

TEST_CASE("search limits that leave nothing without the feature leave no such plan") {
  Scenario s = experts();
  s.search.zero = {3};
  CHECK_FALSE(planner::without_features(s, bit_of(PlanFeature::zero_3)));
  CHECK(planner::without_features(s, bit_of(PlanFeature::zero_2)));
  s.search.zero.clear();
  s.search.recompute = {Recomputation::full};
  CHECK_FALSE(planner::without_features(s, bit_of(PlanFeature::full_recompute)));
  s.search.zero = {3};
  s.search.recompute.clear();
  s.training.error_band.unmeasured = bit_of(PlanFeature::zero_3);
  const Strategies all = searched(s);
  CHECK(all.unmeasured == bit_of(PlanFeature::zero_3));
  CHECK_FALSE(all.measured);
}

TEST_CASE("an interrupted search reports none") {
  Scenario s = experts();
  s.training.error_band.unmeasured = every;
  Strategies all = run_strategies(s, planner::Reach::even, 1, {});
  planner::add_measured(all, s, {.reach = planner::Reach::even}, [] { return true; });
  CHECK(all.unmeasured == 0);
  CHECK_FALSE(all.measured);
}

}  // namespace measured_plan_test
