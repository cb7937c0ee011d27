// JSON of `compare`.
#pragma once

#include <string>
#include <vector>

#include "planner/report/comparison.hpp"

namespace planner {

// {"scenarios": evaluations, each with its "name", "differs": inputs with their values by column,
// "against_first": one entry a scenario after the first}.
std::string comparison_json(const std::vector<Compared>& columns);

}  // namespace planner
