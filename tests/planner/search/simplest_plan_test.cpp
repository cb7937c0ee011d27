// Of plans within search.simpler_within of the fastest the simplest is chosen, and the fastest is
// still found and proved.
#include "planner/search/simplest_plan.hpp"

#include <doctest/doctest.h>

#include <optional>
#include <set>
#include <tuple>

#include "costmodel/estimate/evaluator.hpp"
#include "planner/report/strategy_text.hpp"
#include "planner/search/search_space.hpp"
#include "planner/search/strategy.hpp"
#include "tests/costmodel/support/scenarios.hpp"
#include "tests/planner/support/random_scenario.hpp"
#include "tests/sanitized.hpp"

namespace simplest_plan_test {

using costmodel::Estimate;
using costmodel::Evaluator;
using costmodel::ParallelPlan;
using costmodel::Scenario;
using costmodel::Seconds;
using planner::Reach;
using planner::simplicity;
using scenarios::read;

namespace {

// Two plans of almost the same time: 32 layers on two ranks in 12 chunks each gain less than one
// per cent over plain data parallelism.
const char* const eight_billion =
    "model: llama-3-8b\ncluster: {base: dgx-h100, devices: 32}\n"
    "training: {global_batch: 512, sequence: 8192}\n";
const char* const mixture =
    "model: mixtral-8x7b\ncluster: {base: dgx-h100, devices: 64}\n"
    "training: {global_batch: 256, sequence: 4096, stack: megatron-core-2026}\n";
const char* const dense =
    "model: {kind: llama, layers: 16, hidden: 2048, heads: 16, kv_heads: 4, ffn_hidden: 8192, "
    "vocab: 32000}\ncluster: {base: dgx-a100, devices: 16}\n"
    "training: {global_batch: 32, sequence: 4096, stack: megatron-core-2026}\n";

struct Tried {
  planner::Simplicity simplicity;
  Seconds time;
};

// By trying every plan.
std::optional<Tried> simplest_of_all(const Scenario& s, Seconds most) {
  Evaluator evaluator(s.model, s.cluster, s.training);
  std::optional<Tried> best;
  for (const auto& family : planner::enumerate(s).families) {
    for (const ParallelPlan& member : planner::members(family, s)) {
      for (const int group : planner::micro_batch_groups_offered(s, member)) {
        ParallelPlan plan = member;
        plan.choices.group = group;
        if (evaluator.cost(plan).peak > planner::memory_limit(s)) continue;
        const Tried tried{simplicity(plan), evaluator.iteration_time(plan)};
        const auto key = [](const Tried& t) { return std::tuple(t.simplicity, t.time.value); };
        if (tried.time <= most && (!best || key(tried) < key(*best))) best = tried;
      }
    }
  }
  return best;
}

auto family_of(const ParallelPlan& p) { return std::tuple(p.tp, p.pp, p.dp, p.cp, p.ep); }

}  // namespace

TEST_CASE("of even plans the simplest within the share is found, in scenarios of every kind") {
  random_scenario::Draw draw(20261126);
  int simpler = 0, cases = 0;
  for (int i = 0; i < (sanitized ? 10 : 250); ++i) {
    const auto drawn = random_scenario::draw_scenario(draw);
    Scenario s = read(drawn.yaml());
    s.search.simpler_within = draw.once_in(2) ? 0.01 : 0.05;
    if (planner::enumerate(s).configurations > 1000) continue;
    CAPTURE(drawn.yaml());
    for (const int top : {1, 5}) {
      s.search.top = top;
      const auto all = planner::run_strategies(s, Reach::even, 1, {});
      if (all.found.plans.empty()) continue;
      const Estimate& chosen = all.found.plans.front();
      const Seconds fastest = all.even.front().iteration;
      const auto tried = simplest_of_all(s, planner::most_time(fastest, s));
      REQUIRE(tried);
      CHECK(simplicity(chosen.plan) == tried->simplicity);
      CHECK(chosen.iteration == tried->time);
      CHECK(all.found.lower_bound == fastest);
      CHECK((all.fastest ? all.fastest->iteration : chosen.iteration) == fastest);
      simpler += all.fastest ? 1 : 0;
      ++cases;
    }
  }
  CHECK((sanitized || (cases > 200 && simpler > 10)));
}

TEST_CASE("a simpler plan within one per cent is chosen, and the fastest kept with what it takes") {
  const Scenario s = read(mixture);
  const auto all = planner::run_strategies(s, Reach::layouts, 2, {});
  REQUIRE(all.fastest);
  const Estimate& chosen = all.found.plans.front();
  CHECK(chosen.iteration > all.fastest->iteration);
  CHECK(chosen.iteration <= all.fastest->iteration * 1.01);
  CHECK(simplicity(chosen.plan) < simplicity(all.fastest->plan));
  CHECK(all.found.lower_bound <= all.fastest->iteration);
  const std::string sentence = fastest_sentence(chosen, all.fastest, s);
  CHECK(sentence.find("would take vpp 4 -> 8: ") != std::string::npos);

  Scenario strict = s;
  strict.search.simpler_within = 0;
  const auto first = planner::run_strategies(strict, Reach::layouts, 2, {});
  CHECK_FALSE(first.fastest);
  CHECK(first.found.plans.front().plan == all.fastest->plan);
  CHECK(fastest_sentence(first.found.plans.front(), first.fastest, strict).empty());
}

TEST_CASE("virtual stages are fewer where that costs less than one per cent, layers cut anew") {
  Scenario s = read(std::string(eight_billion) + "plan: {tp: 1, pp: 2, cp: 1}\n");
  const auto all = planner::run_strategies(s, Reach::layouts, 2, {});
  const Estimate& chosen = all.found.plans.front();
  Scenario strict = s;
  strict.search.simpler_within = 0;
  const Estimate first = planner::run_strategies(strict, Reach::layouts, 2, {}).found.plans.front();
  CHECK(first.plan.vpp > chosen.plan.vpp);
  CHECK(chosen.plan.vpp > 1);
  CHECK(chosen.iteration <= first.iteration * 1.01);
  CHECK(all.found.lower_bound <= chosen.iteration);
  for (int vpp = 1; vpp < chosen.plan.vpp; ++vpp) {
    strict.plan.vpp = vpp;
    const auto fewer = planner::run_strategies(strict, Reach::layouts, 2, {}).found.plans;
    REQUIRE(!fewer.empty());
    CHECK(fewer.front().iteration > first.iteration * 1.01);
  }
}

TEST_CASE("a row of the ranking is a family, its fastest member but for the chosen plan") {
  for (const char* const yaml : {eight_billion, dense}) {
    Scenario s = read(yaml);
    s.search.top = 8;
    const auto all = planner::run_strategies(s, Reach::layouts, 2, {});
    const auto& plans = all.found.plans;
    REQUIRE(plans.size() == 8);
    std::set<std::tuple<int, int, int, int, int>> families;
    for (const Estimate& e : plans) families.insert(family_of(e.plan));
    CHECK(families.size() == plans.size());
    for (std::size_t i = 2; i < plans.size(); ++i)
      CHECK(plans[i - 1].iteration <= plans[i].iteration);
    // None that was reported is within the share, and simpler.
    const Seconds most =
        planner::most_time(all.fastest ? all.fastest->iteration : plans.front().iteration, s);
    for (const Estimate& e : plans)
      CHECK((e.iteration > most || simplicity(plans.front().plan) <= simplicity(e.plan)));
    s.search.rows = costmodel::RankingRows::plans;
    const auto by_plan = planner::run_strategies(s, Reach::layouts, 2, {});
    CHECK(by_plan.found.plans.front().plan == plans.front().plan);
  }
}

}  // namespace simplest_plan_test
