// The grid search twice, with pruning and by trying every plan.
#pragma once

#include <doctest/doctest.h>

#include "costmodel/estimate/evaluator.hpp"
#include "planner/search/grid_search.hpp"

namespace both_ways {

struct Searches {
  planner::SearchResult pruned, all;
};

// Checks that both agree: on the ranking, or, when nothing fits, on the least memory.
inline Searches search(const costmodel::Scenario& s) {
  costmodel::Evaluator first(s.model, s.cluster, s.training);
  costmodel::Evaluator second(s.model, s.cluster, s.training);  // which has priced nothing yet
  Searches both{planner::search(s, first), planner::brute_force(s, second)};
  const auto& [pruned, all] = both;
  CHECK(pruned.statistics.configurations == all.statistics.evaluated);
  REQUIRE(pruned.plans.size() == all.plans.size());
  for (std::size_t k = 0; k < all.plans.size(); ++k) {
    CAPTURE(to_string(pruned.plans[k].plan));
    CAPTURE(to_string(all.plans[k].plan));
    CHECK(pruned.plans[k].plan == all.plans[k].plan);
    CHECK(pruned.plans[k].iteration == all.plans[k].iteration);
  }
  if (all.plans.empty()) {
    CHECK(pruned.leanest_peak == all.leanest_peak);
  } else {
    CHECK(pruned.lower_bound == all.plans.front().iteration);
  }
  return both;
}

}  // namespace both_ways
