// A search with real routing: which sizes of expert parallelism a skew leaves.
#include <doctest/doctest.h>

#include <string>

#include "planner/search/grid_search.hpp"
#include "tests/costmodel/support/scenarios.hpp"
#include "tests/planner/support/search_both_ways.hpp"

namespace expert_load_search_test {

namespace {

costmodel::Scenario mixtral(const std::string& load) {
  return scenarios::read(
      "model: mixtral-8x7b\ncluster: {base: dgx-h100, devices: 64}\n"
      "training: {global_batch: 512, sequence: 4096, stack: megatron-bridge, expert_load: " +
      load + "}\nplan: {pp: 4, cp: 1}\n");
}

}  // namespace

TEST_CASE("a strong skew makes `plan` choose fewer ranks of experts") {
  const auto balanced = both_ways::search(mixtral("none")).pruned,
             skewed = both_ways::search(mixtral("{skew: 2}")).pruned;
  const auto &usual = balanced.plans.front(), &best = skewed.plans.front();
  CHECK(best.plan.ep < usual.plan.ep);
  CHECK(best.iteration > usual.iteration);
}

}  // namespace expert_load_search_test
