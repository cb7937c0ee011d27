// All cuts of a pipeline's layers that are quick enough, where these are few: what is left to try
// when the bound of the best cut is not reached.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "planner/solvers/pipeline_cut.hpp"

namespace planner {

// Every cut, as the ends of its stages, that fits and whose own bound (pipeline_cut.hpp) is within
// the limit of the problem. Nothing when there are more than `most`, or too much to look at.
std::optional<std::vector<std::vector<int>>> cuts_within(const CutProblem& problem,
                                                         std::size_t most);

}  // namespace planner
