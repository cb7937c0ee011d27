#include "planner/search/strategy.hpp"

#include <doctest/doctest.h>

#include <set>
#include <string>
#include <tuple>

#include "costmodel/plan/plan_text.hpp"
#include "tests/costmodel/support/scenarios.hpp"

namespace family_members_test {

using costmodel::Estimate;
using planner::Reach;

namespace {

auto family_of(const costmodel::ParallelPlan& p) {
  return std::tuple(p.tp, p.pp, p.dp, p.cp, p.ep);
}

}  // namespace

TEST_CASE("members of a family are its next best plans, each once") {
  costmodel::Scenario s = scenarios::read(
      "model: {kind: llama, layers: 16, hidden: 2048, heads: 16, kv_heads: 4, ffn_hidden: 8192, "
      "vocab: 32000}\ncluster: {base: dgx-a100, devices: 16}\n"
      "training: {global_batch: 32, sequence: 4096, stack: megatron-core-2026}\n");
  s.search.top = 4;
  const auto plans = planner::run_strategies(s, Reach::even, 1, {}).found.plans;
  const auto members = planner::family_members(s, plans, {.reach = Reach::even, .threads = 2});
  REQUIRE(members.size() == plans.size());
  std::set<std::string> seen;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    seen.insert(to_string(plans[i].plan));
    CHECK(members[i].size() >= 3);
    for (std::size_t k = 0; k < members[i].size(); ++k) {
      const Estimate& e = members[i][k];
      CHECK(family_of(e.plan) == family_of(plans[i].plan));
      CHECK(seen.insert(to_string(e.plan)).second);
      if (k > 0) CHECK(members[i][k - 1].iteration <= e.iteration);
      if (i > 0) CHECK(e.iteration >= plans[i].iteration);
    }
  }
}

}  // namespace family_members_test
