// The tensor parallel size inside experts as a remedy: more of it splits the experts' weights over
// ranks that would each hold them whole, for more communication (Megatron-LM,
// --expert-tensor-parallel-size).
#pragma once

#include <vector>

#include "costmodel/scenario/scenario.hpp"

namespace planner {

// Sizes that a search of the scenario does not try, ascending: of its devices in a node, a divisor
// each. The search tries the fixed size, or else 1 and the plan's tp. Empty without experts.
std::vector<int> untried_expert_sizes(const costmodel::Scenario& scenario);

}  // namespace planner
