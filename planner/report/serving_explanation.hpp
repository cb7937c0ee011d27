// How the figures of a plan of serving come about, for `explain`.
#pragma once

#include "costmodel/serving/serving_estimate.hpp"
#include "planner/report/table.hpp"

namespace planner {

// Worked formulas: symbol, value, where it comes from.
Table serving_explanation(const costmodel::ServingScenario& scenario,
                          const costmodel::ServingEstimate& estimate);

}  // namespace planner
