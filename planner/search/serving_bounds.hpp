// What a scenario asks of a plan, and whether what is reported keeps it.
#pragma once

#include <string>
#include <vector>

#include "costmodel/serving/serving_estimate.hpp"

namespace planner {

struct AskedBound {
  std::string_view name, key;  // "first token", "latency_bound.ttft_s" of `serving`
  double limit = 0, reported = 0;
  bool kept = false;
  double excess = 0;  // how many times too much, or too little: kept up to 1
};

// The bounds that the scenario has, in the order of their keys. An open load above the capacity
// keeps none on latencies, which grow without end.
std::vector<AskedBound> asked_bounds(const costmodel::ServingScenario& scenario,
                                     const costmodel::ServingEstimate& estimate);

// "first token 2 s at most: missed (2.35 s)".
std::string to_string(const AskedBound& bound);

// The most of any bound and of the arrivals over the capacity: up to 1 all is kept.
double worst_excess(const costmodel::ServingScenario& scenario,
                    const costmodel::ServingEstimate& estimate);

}  // namespace planner
