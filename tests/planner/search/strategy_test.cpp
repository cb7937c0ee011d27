// Which searches `plan` runs by itself, how far they go, and which layouts they report.
#include "planner/search/strategy.hpp"

#include <doctest/doctest.h>

#include <string>

#include "costmodel/estimate/evaluator.hpp"
#include "planner/diagnosis/reason.hpp"
#include "planner/report/json_mesh.hpp"
#include "planner/report/report_tables.hpp"
#include "planner/report/strategy_text.hpp"
#include "planner/search/best_plans.hpp"
#include "planner/search/simplest_plan.hpp"
#include "planner/search/simplicity.hpp"
#include "tests/costmodel/support/scenarios.hpp"
#include "tests/sanitized.hpp"

namespace strategy_test {

using costmodel::Scenario;
using planner::Reach;
using planner::run_strategies;
using planner::search_layouts;

namespace {

Scenario read(const std::string& stack) {
  return scenarios::read(
      "model: llama-3-8b\ncluster: {base: dgx-a100, devices: 16}\n"
      "training: {global_batch: 64, sequence: 4096, stack: " +
      stack + "}\n");
}

bool tells(const std::vector<std::string>& sentences, const std::string& words) {
  for (const auto& sentence : sentences)
    if (sentence.find(words) != std::string::npos) return true;
  return false;
}

}  // namespace

TEST_CASE("layouts are searched unasked where the stack has words for them") {
  CHECK(planner::usual_reach(read("megatron-core-2026")) == Reach::layouts);
  CHECK(planner::usual_reach(read("deepspeed-2021")) == Reach::layouts);
  Scenario deep = read("megatron-core-2026");
  deep.model.layers = planner::most_cut_layers + 1;
  CHECK(planner::usual_reach(deep) == Reach::even);
  const Scenario old = read("megatron-2021");
  CHECK(planner::usual_reach(old) == Reach::even);
  const auto all = run_strategies(old, Reach::even, 1, {});
  CHECK(left_out(all, old).find("for which megatron-2021 has no words") != std::string::npos);
}

// Weights and states leave little memory, so stages recompute as much as each must.
TEST_CASE("sizes and recomputation of stages are searched unasked where the stack has them") {
  const auto scenario = [](const std::string& stack) {
    return scenarios::read(
        "model: llama-3-8b\ncluster: {base: pcie-8x-rtx-4090, devices: 8}\n"
        "training: {global_batch: 64, sequence: 2048, precision: bf16, stack: " +
        stack + "}\n");
  };
  const Scenario s = scenario("alpa-2022");
  REQUIRE(planner::usual_reach(s) == Reach::sizes);
  const auto all = run_strategies(s, Reach::sizes, 2, {});
  REQUIRE(all.meshes);
  REQUIRE(all.found.plans.size() == static_cast<std::size_t>(s.search.top));
  const costmodel::Estimate& best = all.found.plans.front();
  const costmodel::Estimate& alike = all.layouts->plans.front();
  CHECK(!best.plan.stages.empty());
  CHECK(best.iteration * 1.001 < alike.iteration);
  CHECK(best.fits());
  CHECK(all.found.lower_bound <= best.iteration);
  CHECK(all.found.lower_bound <= all.layouts->lower_bound);
  costmodel::Evaluator evaluator(s.model, s.cluster, s.training);
  CHECK(evaluator.iteration_time(best.plan) == best.iteration);
  CHECK(planner::one_step_away(best, s, evaluator).empty());
  const auto table = planner::ranking_table(all.found.plans, 0);
  const auto& columns = table.columns;
  for (std::size_t i = 0; i < columns.size(); ++i)
    if (columns[i].title == "recompute") CHECK(table.rows.front()[i] == "by stage");
  CHECK(left_out(all, s).find("other shardings inside a stage") != std::string::npos);
  CHECK(left_out(all, s).find("of their own") == std::string::npos);
  const auto one = run_strategies(s, Reach::sizes, 1, {});
  CHECK(one.found.plans.front().plan == best.plan);
  CHECK(one.found.lower_bound == all.found.lower_bound);
  CHECK(planner::usual_reach(scenario("megatron-core-2026")) == Reach::layouts);
}

TEST_CASE("a search that has spent its effort ends alike for any number of threads") {
  const Scenario s = read("megatron-core-2026");
  const auto whole = run_strategies(s, Reach::layouts, 2, {});
  REQUIRE(!whole.found.plans.empty());
  REQUIRE_FALSE(whole.layouts->spent);
  CHECK(whole.layouts->effort > 0);
  const std::uint64_t part = whole.layouts->effort / 8;
  const auto one = run_strategies(s, Reach::layouts, 1, {}, {}, part);
  CHECK(one.layouts->spent);
  CHECK(one.layouts->expired);
  CHECK(one.layouts->effort < whole.layouts->effort);
  CHECK(one.found.lower_bound <= whole.found.plans.front().iteration);
  CHECK(one.found.plans.front().iteration >= whole.found.plans.front().iteration);
  CHECK(tells(strategy_sentences(one, {}), "The usual effort was spent"));
  CHECK_FALSE(tells(strategy_sentences(whole, {}), "effort was spent"));
  for (const int threads : {2, 3}) {
    const auto several = run_strategies(s, Reach::layouts, threads, {}, {}, part);
    REQUIRE(several.found.plans.size() == one.found.plans.size());
    for (std::size_t i = 0; i < one.found.plans.size(); ++i)
      CHECK(several.found.plans[i].plan == one.found.plans[i].plan);
    CHECK(several.found.lower_bound == one.found.lower_bound);
    CHECK(several.layouts->effort == one.layouts->effort);
  }
}

TEST_CASE("however few rows are asked for, the first is the same") {
  Scenario s = scenarios::read(
      "model: qwen3-30b-a3b\ncluster: {base: dgx-a100, devices: 24}\n"
      "training: {global_batch: 240, sequence: 4096}\n");
  const auto first = [&](int top) {
    s.search.top = top;
    const auto all = run_strategies(s, Reach::layouts, 2, {}, {}, 200'000);
    REQUIRE(all.found.plans.size() == static_cast<std::size_t>(top));
    return all.found.plans.front();
  };
  const costmodel::Estimate five = first(5);
  CHECK(first(1).plan == five.plan);
}

TEST_CASE("uneven stages are reported only where even ones take a thousandth longer") {
  for (const std::string stack : {"megatron-core-2026", "deepspeed-2021", "torchtitan"}) {
    CAPTURE(stack);
    const Scenario s = read(stack);
    const auto all = run_strategies(s, Reach::layouts, 2, {});
    REQUIRE(!all.even.empty());
    costmodel::Evaluator evaluator(s.model, s.cluster, s.training);
    const double even = all.even.front().iteration.value;
    for (const auto& e : all.found.plans) {
      if (e.plan.stage_layers.empty()) continue;
      const double own = e.iteration.value;
      CHECK((own >= even || own * 1.001 < even));
      auto plain = e.plan;
      plain.stage_layers.clear();
      if (!is_valid(plain, s.model, s.cluster, s.training)) continue;
      const bool fits = evaluator.cost(plain).peak <= planner::memory_limit(s);
      if (fits) CHECK(evaluator.iteration_time(plain).value > own * 1.001);
    }
  }
}

// Of the replicas and pipelines that a mixed cluster offers, as of even stages.
TEST_CASE("where devices differ the simplest plan is chosen, and a row is a family") {
  Scenario s =
      scenarios::read("model: llama-3-8b\n" + scenarios::mixed(8, 8) +
                      "training: {global_batch: 64, sequence: 4096, stack: megatron-core-2025}\n");
  s.search.simpler_within = 0;
  const auto by_time = run_strategies(s, Reach::meshes, 2, {});
  const auto& rows = by_time.meshes->plans;
  REQUIRE(rows.size() > 2);
  CHECK_FALSE(by_time.fastest);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k) {
      CHECK(rows[k].iteration <= rows[i].iteration);
      const bool same_kind = rows[k].plan.pipelines() == rows[i].plan.pipelines();
      CHECK_FALSE((same_kind && planner::one_family(rows[k].plan, rows[i].plan)));
    }
  }
  s.search.simpler_within = 0.1;  // so much that some plan is simpler
  const auto all = run_strategies(s, Reach::meshes, 2, {});
  const costmodel::Estimate& chosen = all.found.plans.front();
  REQUIRE(all.fastest);
  CHECK(all.fastest->plan == rows.front().plan);
  CHECK(all.meshes->plans.front().plan == chosen.plan);
  CHECK(all.meshes->plans.size() == rows.size());
  CHECK(planner::simplicity(chosen.plan) < planner::simplicity(all.fastest->plan));
  CHECK(chosen.iteration <= planner::most_time(all.fastest->iteration, s));
  CHECK(all.found.lower_bound <= all.fastest->iteration);
  for (const auto& row : rows)
    if (row.iteration <= planner::most_time(all.fastest->iteration, s))
      CHECK(planner::simplicity(chosen.plan) <= planner::simplicity(row.plan));
  const std::string json = planner::mesh_json(*all.meshes, s, {});
  CHECK(json.find("\"faster_pct\"") != std::string::npos);
  CHECK(json.find("Of the plans found within 10 % of the fastest") != std::string::npos);
  if (sanitized) return;
  s.search.rows = costmodel::RankingRows::plans;
  CHECK(run_strategies(s, Reach::meshes, 1, {}).found.plans.front().plan == chosen.plan);
}

TEST_CASE("who cuts layers by their costs is given no other layout, and its plan reads back") {
  const Scenario s = scenarios::read(
      "model: qwen2.5-vl-7b\ncluster: {base: dgx-a100, devices: 16}\ntraining: {global_batch: 48, "
      "sequence: 65536, stack: nanotron}\n");
  CHECK(usual_reach(s) == Reach::even);
  Scenario two = s;
  two.plan.pp = 2;
  for (const Reach reach : {Reach::even, Reach::layouts}) {
    const auto all = run_strategies(two, reach, 1, {});
    REQUIRE_FALSE(all.found.plans.empty());
    for (const auto& found : all.found.plans) CHECK_FALSE(found.plan.stage_layers.empty());
  }
}

}  // namespace strategy_test
