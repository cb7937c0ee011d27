// Latency over load of a plan that serves: the closed form at 1, 2, 4, ... requests in flight in a
// replica.
#pragma once

#include <vector>

#include "costmodel/serving/serving_estimate.hpp"

namespace planner {

struct LoadPoint {
  double in_flight = 0;  // over all replicas
  double requests_per_s = 0, output_per_s = 0;
  costmodel::Seconds ttft, tpot;
};
// Up to what the cache or the batch holds; empty where the plan does not fit.
std::vector<LoadPoint> load_curve(const costmodel::ServingScenario& scenario,
                                  const costmodel::ServingSizes& sizes);

}  // namespace planner
