// Reports of serving as JSON. Times are seconds, sizes bytes.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "costmodel/serving/engine.hpp"
#include "planner/serving/serving_evidence.hpp"
#include "planner/serving/serving_search.hpp"

namespace planner {

std::string serving_json(const costmodel::ServingScenario& scenario,
                         const costmodel::ServingEstimate& estimate,
                         const costmodel::ServingFit& fit);

std::string serving_search_json(const costmodel::ServingScenario& scenario,
                                const ServingSearch& found, const costmodel::ServingFit& fit);

// One object a run, with what is predicted and measured.
std::string serving_runs_json(const std::vector<ServingRun>& runs);

// The arguments of a launch as a map.
std::string launch_json(const std::vector<std::pair<std::string, std::string>>& arguments,
                        const std::vector<std::string>& notes);

}  // namespace planner
