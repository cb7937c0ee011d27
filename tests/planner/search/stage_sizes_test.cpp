// Stages with context and expert parallelism of their own: what a stage is offered, what is told of
// it, and who refuses it.
#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "costmodel/estimate/evaluator.hpp"
#include "planner/frameworks/megatron_rules.hpp"
#include "planner/report/explain.hpp"
#include "planner/report/json_mesh.hpp"
#include "planner/report/json_report.hpp"
#include "planner/report/mesh_report.hpp"
#include "planner/search/mesh_search.hpp"
#include "planner/search/search_space.hpp"
#include "planner/search/stage_options.hpp"
#include "tests/costmodel/support/scenarios.hpp"

namespace stage_sizes_test {

using costmodel::ContextExchange;
using costmodel::Estimate;
using costmodel::Evaluator;
using costmodel::ParallelPlan;
using costmodel::Scenario;
using costmodel::StagePlan;
using fixtures::contains;
using scenarios::read;

namespace {

const std::string moe =
    "model: {kind: moe, layers: 4, hidden: 1024, heads: 16, ffn_hidden: 4096, vocab: 32000, "
    "experts: 8, top_k: 2, expert_ffn_hidden: 1024}\n"
    "training: {global_batch: 8, sequence: 16384, stack: megatron-core-2025}\n";

using Sizes = std::tuple<int, int, ContextExchange, int, int, int>;

template <class Plan>
Sizes sizes_of(const Plan& p) {
  return {p.tp, p.cp, p.cp_comm, p.ep, p.etp, p.dp};
}

// Of a stage that is the whole pipeline.
std::set<Sizes> of_grid(const Scenario& s, std::int64_t sequences) {
  Scenario one = s;
  one.plan.pp = 1;
  std::set<Sizes> all;
  for (const planner::Family& family : planner::enumerate(one).families) {
    if (family.plan.dp * family.plan.micro_batch == sequences) all.insert(sizes_of(family.plan));
  }
  return all;
}

std::set<Sizes> of_stage(const Scenario& s, std::int64_t sequences) {
  std::set<Sizes> all;
  const auto devices = static_cast<int>(s.cluster.devices);
  for (const std::int64_t tp : planner::divisors(devices)) {
    if ((s.plan.tp && *s.plan.tp != tp) || (s.search.max_tp > 0 && tp > s.search.max_tp)) continue;
    for (const StagePlan& sizes :
         planner::sizes_offered(s, devices, static_cast<int>(tp), sequences)) {
      ParallelPlan plan;
      plan.stages = {sizes};
      plan.dp = sizes.dp;
      plan.micro_batch = sequences / sizes.dp;
      plan.sequence_parallel = true;
      if (is_valid(stage_plan(plan, 0), s.model, s.cluster, s.training))
        all.insert(sizes_of(sizes));
    }
  }
  return all;
}

// 2 x 2 (c 2) beside 1 x 2 with c 4 (a2a) and e 4.
ParallelPlan unlike(const Scenario& s) {
  ParallelPlan plan;
  plan.pp = 2;
  plan.stage_layers = {2, 2};
  plan.sequence_parallel = true;
  StagePlan first{2, 2, {}, 0, "h100"}, second{1, 2, {}, 1, "a100"};
  first.cp = 2;
  second.cp = 4, second.cp_comm = ContextExchange::a2a, second.ep = 4;
  plan.stages = {first, second};
  plan.dp = 2;
  plan.micro_batch = 1;
  REQUIRE(violations(plan, s.model, s.cluster, s.training).empty());
  return plan;
}

}  // namespace

TEST_CASE("a stage is offered the context and expert parallelism that the grid offers a plan") {
  const std::string eight = "cluster: {base: dgx-h100, devices: 8}\n";
  for (const std::string limits :
       {"", "search: {max_cp: 2, max_ep: 4}\n", "search: {max_cp: 8, max_micro_batch: 1}\n",
        "plan: {cp: 2, ep: 2}\n", "plan: {cp_comm: a2a, etp: 1}\n", "search: {max_tp: 2}\n"}) {
    const Scenario s = read(moe + eight + limits);
    for (const std::int64_t sequences : {1, 2, 8}) {
      CAPTURE(limits);
      const auto grid = of_grid(s, sequences), stage = of_stage(s, sequences);
      CHECK(stage == grid);
      CHECK((!stage.empty() || sequences > 1));
    }
  }
  // As many as cp 1, 2 and 4, three exchanges, ep 1, 2, 4, 8 and etp 1 or tp make.
  CHECK(of_stage(read(moe + eight), 8).size() > 60);
}

TEST_CASE("where neither is open a stage is offered tensor and data parallel sizes alone") {
  const Scenario s = read(
      "model: {base: llama-3.2-1b, layers: 8}\n"
      "cluster: {base: dgx-h100, devices: 8}\n"
      "training: {global_batch: 8, sequence: 2048, stack: megatron-core-2025}\n");
  for (const int tp : {1, 2, 4, 8}) {
    const auto all = planner::sizes_offered(s, 8, tp, 8);
    REQUIRE(all.size() == 1);
    CHECK(all.front() == StagePlan{tp, 8 / tp, {}, 0, ""});
  }
}

TEST_CASE("a context or expert parallel size that the plan fixes is that of every stage") {
  const Scenario s = read(moe + scenarios::mixed(4, 4) + "plan: {cp: 2, cp_comm: a2a, ep: 2}\n");
  const planner::MeshSearch found = planner::search_meshes(s);
  REQUIRE(!found.plans.empty());
  for (const Estimate& e : found.plans) {
    if (!e.plan.replica_groups.empty()) continue;
    for (const StagePlan& stage : e.plan.stages) {
      CHECK(stage.cp == 2);
      CHECK(stage.cp_comm == ContextExchange::a2a);
      CHECK(stage.ep == 2);
    }
  }
}

TEST_CASE("ranks of stages with cp and ep of their own are placed by their own coordinates") {
  const Scenario s = read(moe + scenarios::mixed(8, 8));
  const auto ranks = planner::placement(unlike(s), s.cluster);
  REQUIRE(ranks.size() == 16);
  const auto at = [&](std::size_t r) {
    return std::tuple{ranks[r].stage, ranks[r].tp, ranks[r].cp, ranks[r].dp, ranks[r].ep};
  };
  CHECK(at(3) == std::tuple{0, 1, 1, 0, 0});
  CHECK(at(4) == std::tuple{0, 0, 0, 1, 0});
  CHECK(at(8 + 3) == std::tuple{1, 0, 3, 0, 3});
  CHECK(at(8 + 5) == std::tuple{1, 0, 1, 1, 1});
  const auto json = nlohmann::json::parse(planner::placement_text(ranks, "p.json"));
  CHECK(json[11]["ep"] == 3);
  CHECK(json[11]["etp"] == 0);
  // A plan that is alike everywhere has the same coordinates; one without experts cut tells none.
  const Scenario even = read(moe + "cluster: {base: dgx-h100, devices: 8}\n");
  ParallelPlan plain;
  plain.dp = 2, plain.cp = 4, plain.ep = 4;
  CHECK(planner::placement(plain, even.cluster)[5].ep == 1);
  plain.ep = 1;
  const auto none = planner::placement_text(planner::placement(plain, even.cluster), "p.json");
  CHECK(!contains(none, "\"ep\""));
}

TEST_CASE("what is told of stages with cp and ep of their own") {
  const Scenario s = read(moe + scenarios::mixed(8, 8));
  Evaluator evaluator(s.model, s.cluster, s.training);
  const ParallelPlan plan = unlike(s);
  const Estimate e = evaluator.estimate(plan);
  const auto told = nlohmann::json::parse(planner::estimate_json(e, s))["plan"];
  CHECK(told["cp"].is_null());
  CHECK(told["cp_comm"].is_null());
  CHECK(told["ep"].is_null());
  CHECK(told["etp"] == 1);
  CHECK(told["stages"][1]["cp"] == 4);
  planner::MeshSearch found;
  found.plans = {e};
  CHECK(planner::mesh_rows(found).rows.front()[1] ==
        "2 x 2 x 2 c 2 (p2p) on h100, 1 x 2 x 2 c 4 (a2a) e 4 on a100");
  const std::string text = planner::explanation(plan, s, evaluator, {});
  CHECK(contains(text, "2 x 2 x 2"));
  CHECK(contains(text, "tokens of a sequence on a rank: 16384 / 4, cp_comm a2a"));
  CHECK(contains(text, "experts on a rank: 8 / 4; 2 ranks hold the same"));
  CHECK(contains(text, "as of stage 1"));
  const std::string report = planner::plan_report(e, s, {});
  CHECK(contains(report, "4 a2a"));
  // Stages that differ in cp alone are explained apart.
  ParallelPlan context = plan;
  context.stages[1] = context.stages[0];
  context.stages[1].group = "a100";
  context.stages[1].cp_comm = ContextExchange::all_gather;
  const Scenario one = read(moe + "cluster: {base: dgx-h100, devices: 16}\n");
  for (StagePlan& stage : context.stages) stage.group = "";
  Evaluator even(one.model, one.cluster, one.training);
  CHECK(contains(planner::explanation(context, one, even, {}), "as of stage 1"));
}

TEST_CASE("Megatron-LM is not asked for stages that differ in cp or ep") {
  const Scenario s = read(moe + scenarios::mixed(8, 8));
  const auto faults = planner::megatron_violations(s, unlike(s));
  REQUIRE(!faults.empty());
  CHECK(faults.front().key == "stages");
  CHECK(faults.front().reason == "Megatron-LM's stages and devices are all alike");
}

}  // namespace stage_sizes_test
