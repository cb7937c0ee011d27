// What layouts of a family share: a search of one family finds what all its layouts, priced one by
// one, offer.
#include "planner/search/family_search.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "costmodel/estimate/evaluator.hpp"
#include "planner/search/grid_search.hpp"
#include "planner/search/layout.hpp"
#include "planner/search/search_space.hpp"
#include "planner/search/strategy.hpp"
#include "tests/costmodel/support/scenarios.hpp"

namespace family_search_test {

using costmodel::Evaluator;
using costmodel::Scenario;
using planner::bounded_families;
using planner::BoundedFamily;
using planner::FamilySearch;
using planner::Podium;

namespace {

// Memory for few plans: states alone rule out some ZeRO stages, activations some recomputations.
Scenario tight(const std::string& margin) {
  return scenarios::read(
      "model: {kind: llama, layers: 14, hidden: 4096, heads: 32, kv_heads: 8, ffn_hidden: 14336, "
      "vocab: 32000}\ncluster: {base: dgx-h100, devices: 8}\n"
      "training: {global_batch: 16, sequence: 4096, stack: megatron-core-2026}\n"
      "search: {max_micro_batch: 1, max_vpp: 3, memory_margin: " +
      margin + "}\n");
}

}  // namespace

TEST_CASE("families come with the least bound first, and no plan of one is below its bound") {
  const Scenario s = tight("0.2");
  const auto families = bounded_families(s);
  REQUIRE(families.size() > 5);
  Podium podium(static_cast<std::size_t>(s.search.top));
  const std::function<bool()> never;
  FamilySearch search(s, podium, never, planner::usual_effort);
  std::size_t found = 0;
  for (std::size_t i = 0; i < families.size(); ++i) {
    if (i > 0) CHECK(families[i - 1].bound <= families[i].bound);
    const auto opened = search.open(families[i]);
    CHECK_FALSE(opened.expired);
    for (const auto& plan : opened.found) {
      CHECK(plan.time.value >= families[i].bound.value * (1 - 1e-9));
      CHECK(plan.peak <= planner::memory_limit(s));
      ++found;
    }
  }
  CHECK(found > 10);
}

TEST_CASE("what fits of the plain layouts of chunks is found, or something better is") {
  for (const char* margin : {"0", "0.4", "0.6"}) {
    const Scenario s = tight(margin);
    Podium podium(static_cast<std::size_t>(s.search.top));
    const std::function<bool()> never;
    FamilySearch search(s, podium, never, planner::usual_effort);
    Evaluator evaluator(s.model, s.cluster, s.training);
    for (const BoundedFamily& family : bounded_families(s)) {
      const auto opened = search.open(family);
      for (const int chunks : {2, 3}) {
        auto plan = family.plan;
        plan.vpp = chunks;
        plan.schedule = costmodel::usual_schedule(chunks);
        plan.stage_layers = planner::balanced_layout(s.model.layers, chunks * plan.pp);
        if (!is_valid(plan, s.model, s.cluster, s.training)) continue;
        for (const auto& member : planner::members({plan}, s)) {
          if (evaluator.cost(member).peak > planner::memory_limit(s)) continue;
          const auto time = evaluator.iteration_time(member);
          CHECK(std::ranges::any_of(
              opened.found, [&](const planner::Ranked& r) { return r.time <= time * 1.001; }));
        }
      }
    }
  }
}

}  // namespace family_search_test
