// The tensor parallel size inside experts as a remedy: more of it splits the experts' weights over
// ranks that would each hold them whole, for more communication (Megatron-LM,
// --expert-tensor-parallel-size).
#pragma once

#include <string>
#include <vector>

#include "costmodel/estimate/estimate.hpp"
#include "costmodel/scenario/scenario.hpp"

namespace costmodel {
class Evaluator;
}  // namespace costmodel

namespace planner {

// Sizes that a search of the scenario does not try, ascending: of its devices in a node, a divisor
// each. The search tries the fixed size, or else 1 and the plan's tp. Empty without experts.
std::vector<int> untried_expert_sizes(const costmodel::Scenario& scenario);

// Of a plan that does not fit, its other expert tensor sizes with which it is valid and fits:
// "etp 4: fits in 57.41 GiB". Empty without experts, and where stages differ.
std::vector<std::string> fitting_expert_sizes(costmodel::ParallelPlan plan,
                                              costmodel::Evaluator& evaluator);

}  // namespace planner
