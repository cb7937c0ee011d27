// The textbook's formulas with a scenario's values: three corollaries of the pipeline, the choice
// of the micro-batch, what ZeRO leaves of a parameter, and each pair of sizes against one another.
#pragma once

#include <vector>

#include "costmodel/estimate/estimate.hpp"
#include "costmodel/scenario/scenario.hpp"
#include "planner/report/explain_stages.hpp"

namespace planner {

// Groups "corollaries", "choice of b", "ZeRO" and "trade-offs"; of an even plan.
std::vector<Explained> textbook(const costmodel::Estimate& estimate,
                                const costmodel::Scenario& scenario,
                                costmodel::Evaluator& evaluator);

}  // namespace planner
