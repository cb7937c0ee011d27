// The plan that a command evaluates where keys of it are left to the search.
#include "planner/search/settled_plan.hpp"

#include <doctest/doctest.h>

#include "costmodel/estimate/plan_estimate.hpp"
#include "planner/search/strategy.hpp"
#include "tests/costmodel/support/fixtures.hpp"
#include "tests/costmodel/support/scenarios.hpp"

namespace settled_plan_test {

using costmodel::Scenario;
using fixtures::contains;
using planner::settled_plan;
using planner::settled_run;

namespace {

// Ten layers, which divide into few numbers of stages.
Scenario ten(const std::string& plan, const std::string& more = "") {
  return scenarios::read(
      "model: {kind: llama, layers: 10, hidden: 4096, heads: 32, kv_heads: 8, ffn_hidden: 14336, "
      "vocab: 32000}\ncluster: {base: dgx-h100, devices: 4}\n"
      "training: {global_batch: 24, sequence: 4096, stack: megatron-core-2026}\nplan: " +
      plan + "\n" + more);
}

double peak_of(const Scenario& s, const costmodel::ParallelPlan& plan) {
  return estimate_of(s.model, s.cluster, s.training, plan).peak.value;
}

}  // namespace

TEST_CASE("a plan that is auto is the one that the search reports first") {
  const Scenario s = ten("auto");
  const auto best = planner::chosen_plan(s);
  REQUIRE(best);
  const auto settled = settled_plan(s, 2);
  REQUIRE(settled);
  CHECK(settled->plan == best->plan);
  CHECK(settled->notes.empty());
  CHECK_FALSE(settled->nothing_fits);
}

TEST_CASE("layers are searched where stage_layers is auto, and even where it is left out") {
  const auto layers = [](const std::string& plan) {
    return settled_plan(ten(plan, "search: {simpler_within: 0}\n")).value().plan.stage_layers;
  };
  CHECK(layers("{pp: 4, recompute: auto, stage_layers: auto}").size() == 4);
  CHECK(layers("{pp: 2, micro_batch: auto}").empty());
  CHECK(layers("{pp: 2, stage_layers: [6, 4], micro_batch: auto}") == std::vector<int>{6, 4});
}

TEST_CASE(
    "the margin is kept but for a run that has run, and what needs least stands in for none") {
  const std::string keys = "{tp: auto, micro_batch: auto, recompute: auto, zero: auto}";
  const Scenario all = ten(keys, "search: {memory_margin: 0, simpler_within: 0}\n");
  const auto widest = settled_plan(all);
  REQUIRE(widest);
  const double share = peak_of(all, widest->plan) / all.cluster.device.memory.value;
  const Scenario less =
      ten(keys, "search: {memory_margin: " + std::to_string(1 - 0.95 * share) + "}\n");
  const auto within = settled_plan(less);
  REQUIRE(within);
  CHECK_FALSE(within->nothing_fits);
  CHECK(peak_of(less, within->plan) < peak_of(all, widest->plan));
  CHECK(settled_run(less)->plan == widest->plan);
  const auto none = settled_plan(ten(keys, "search: {memory_margin: 0.9}\n"));
  REQUIRE(none);
  CHECK(none->nothing_fits);
  REQUIRE(none->notes.size() == 1);
  CHECK(contains(none->notes[0], "leaves 90 % of device memory free (search.memory_margin)"));
}

TEST_CASE("a plan that is of no use gives way to the next that is") {
  const Scenario s = ten("auto");
  const auto fastest = settled_plan(s)->plan;
  const auto refusal = [&](const costmodel::ParallelPlan& plan) {
    return plan.tp == fastest.tp && plan.pp == fastest.pp ? "no word" : "";
  };
  const auto next = settled_plan(s, 1, refusal);
  REQUIRE(next);
  CHECK((next->plan.tp != fastest.tp || next->plan.pp != fastest.pp));
  REQUIRE(!next->notes.empty());
  CHECK(contains(next->notes.front(), "the fastest is refused (no word); this is the next"));
  // Where none is, the fastest, whose refusal has the reason.
  const auto none = settled_plan(s, 1, [](const costmodel::ParallelPlan&) { return "no word"; });
  CHECK(none->plan == fastest);
  CHECK(none->notes.empty());
}

TEST_CASE("a plan that is of use is found where no family's best is") {
  const Scenario s = ten("auto");
  const auto fastest = settled_plan(s)->plan;
  // One layer of a stage recomputed, no ZeRO, a sequence at a time: nobody's fastest.
  const auto use = [](const costmodel::ParallelPlan& plan) {
    return plan.recompute.granularity == costmodel::Recomputation::full && plan.zero == 0 &&
           plan.micro_batch == 1 && plan.stage_layers.empty();
  };
  REQUIRE_FALSE(use(fastest));
  int asked = 0;
  const auto found = settled_plan(s, 1, [&](const costmodel::ParallelPlan& plan) {
    ++asked;
    return use(plan) ? "" : "no word";
  });
  REQUIRE(found);
  CHECK(use(found->plan));
  REQUIRE(!found->notes.empty());
  // No other plan of use is faster: the search with those keys written has none.
  Scenario fixed =
      ten("{recompute: full, zero: 0, micro_batch: 1}", "search: {simpler_within: 0}\n");
  const auto alone = planner::chosen_plan(fixed, {.reach = planner::Reach::even});
  REQUIRE(alone);
  CHECK(estimate_of(s.model, s.cluster, s.training, found->plan).iteration <= alone->iteration);
  // What is refused whatever the plan is not asked for ever.
  asked = 0;
  settled_plan(s, 1, [&](const costmodel::ParallelPlan&) { return ++asked, "never"; });
  CHECK(asked < 1'200);
}

TEST_CASE("torchtitan's ZeRO 1 is for who writes it") {
  const auto zero = [](const std::string& written) {
    const Scenario s = scenarios::read(
        "model: llama-3-8b\ncluster: {base: dgx-h100, devices: 8}\n"
        "training: {global_batch: 64, sequence: 4096, stack: torchtitan}\n"
        "plan: {tp: 2, pp: 1, micro_batch: auto, zero: " +
        written + "}\n");
    return settled_plan(s)->plan.zero;
  };
  CHECK(zero("1") == 1);
  CHECK(zero("auto") != 1);
}

TEST_CASE("HybridEP is searched where its kernels run") {
  const auto dispatcher = [](const char* cluster) {
    const Scenario s = scenarios::read(
        std::string("model: qwen3-30b-a3b\ncluster: {base: ") + cluster +
        ", devices: 8}\ntraining: {global_batch: 64, sequence: 4096, stack: megatron-core-2026}\n"
        "plan: {tp: 1, pp: 1, ep: 8, micro_batch: auto}\n");
    return settled_plan(s)->plan.experts.dispatcher;
  };
  CHECK(dispatcher("dgx-h200") == costmodel::Dispatcher::hybridep);
  CHECK(dispatcher("mi300x-8x") == costmodel::Dispatcher::alltoall);
}

}  // namespace settled_plan_test
