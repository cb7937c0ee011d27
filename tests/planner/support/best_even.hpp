// The best even plan of a scenario.
#pragma once

#include <doctest/doctest.h>

#include "costmodel/estimate/evaluator.hpp"
#include "planner/search/grid_search.hpp"

namespace best_even {

inline costmodel::Estimate best_of(costmodel::Scenario s) {
  s.search.top = 1;
  costmodel::Evaluator evaluator(s.model, s.cluster, s.training);
  const auto found = planner::search(s, evaluator);
  REQUIRE(!found.plans.empty());
  return found.plans.front();
}

}  // namespace best_even
