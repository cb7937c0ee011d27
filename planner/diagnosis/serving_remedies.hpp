// What to change where no plan of the space serves as asked.
#pragma once

#include <string>
#include <vector>

#include "planner/search/serving_search.hpp"

namespace planner {

// Empty where the search has an answer. What is advised is of the simulation where there is one.
std::vector<std::string> serving_remedies(const costmodel::ServingScenario& scenario,
                                          const ServingSearch& found);

// Where the cache holds requests, but not one of max_model_len, without which the engine does not
// start; "" elsewhere.
std::string length_remedy(const costmodel::ServingMemory& memory);

}  // namespace planner
