// Exchanges that a plan could make instead of its own, or makes beside it, priced on its cluster:
// gradients by torch's DataParallel, by parameter servers and in two levels; the inputs of a tensor
// group; a linear layer alone.
#pragma once

#include <vector>

#include "costmodel/estimate/estimate.hpp"
#include "costmodel/scenario/scenario.hpp"
#include "planner/report/explain_stages.hpp"

namespace planner {

// Groups "gradients otherwise" (of more than one replica) and "tensor parallel alone" (of t > 1);
// of an even plan.
std::vector<Explained> other_exchanges(const costmodel::Estimate& estimate,
                                       const costmodel::Scenario& scenario,
                                       costmodel::Evaluator& evaluator);

}  // namespace planner
