// The search for plans with prompts on devices of their own (costmodel/serving/disaggregation):
// every pair of a pool for prompts and one that decodes, each with sizes and a number of its own.
#pragma once

#include <vector>

#include "planner/search/serving_search.hpp"
#include "planner/search/serving_space.hpp"

namespace planner {

struct PoolSearch {
  std::size_t choices = 0, fit = 0, keep = 0;
  std::vector<PricedChoice> near;  // those that are worth a simulation (Shortlist)
  // Of all that fit, what each bound asks for: the shortest first token, time a token and answer,
  // and the most requests a second.
  std::vector<ServingChoice> extremes;
};

// Pools that the plan says are taken as they are. Nothing is tried where the plan says sizes or
// `disaggregation: none`, or prompts are not counted.
PoolSearch search_pools(const costmodel::ServingScenario& scenario, PricedSteps& steps);

}  // namespace planner
