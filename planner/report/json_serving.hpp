// Reports of serving as JSON. Times are seconds, sizes bytes.
#pragma once

#include <string>

#include "costmodel/serving/engine.hpp"
#include "planner/search/serving_search.hpp"

namespace planner {

std::string serving_json(const costmodel::ServingScenario& scenario,
                         const costmodel::ServingEstimate& estimate,
                         const costmodel::ServingFit& fit);

std::string serving_search_json(const costmodel::ServingScenario& scenario,
                                const ServingSearch& found, const costmodel::ServingFit& fit);

}  // namespace planner
