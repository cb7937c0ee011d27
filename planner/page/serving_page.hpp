// Reports of serving as one page of HTML that opens offline.
#pragma once

#include <string>
#include <vector>

#include "costmodel/serving/engine.hpp"
#include "planner/diagnosis/load_curve.hpp"
#include "planner/search/serving_search.hpp"

namespace planner {

// Rate, latencies, memory; where a token's time goes; the curve of latency over load; why.
std::string serving_page(const costmodel::ServingScenario& scenario,
                         const costmodel::ServingEstimate& estimate,
                         const costmodel::ServingFit& fit);

// The best plan's page with the ranking and the front, or what would help.
std::string serving_search_page(const costmodel::ServingScenario& scenario,
                                const ServingSearch& found, const costmodel::ServingFit& fit);

// Time a token over output tokens/s; "" for fewer than two points.
std::string load_chart(const std::vector<LoadPoint>& curve);

}  // namespace planner
