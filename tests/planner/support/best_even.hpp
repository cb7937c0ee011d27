// The even plan that is chosen of a scenario.
#pragma once

#include <doctest/doctest.h>

#include "planner/search/strategy.hpp"

namespace best_even {

inline costmodel::Estimate best_of(costmodel::Scenario s) {
  s.search.top = 1;
  const auto best = planner::chosen_plan(s, {.reach = planner::Reach::even});
  REQUIRE(best);
  return *best;
}

}  // namespace best_even
