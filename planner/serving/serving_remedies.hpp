// What to change where no plan of the space serves as asked.
#pragma once

#include <string>
#include <vector>

#include "planner/serving/serving_search.hpp"

namespace planner {

// `fit`: all plans that leave room for a request, closed form; `nearest`: of those simulated. What
// is advised is of the simulation where there is one.
std::vector<std::string> serving_remedies(const costmodel::ServingScenario& scenario,
                                          const std::vector<ServingCandidate>& fit,
                                          const std::vector<ServingCandidate>& nearest);

}  // namespace planner
