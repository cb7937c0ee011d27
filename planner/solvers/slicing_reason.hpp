// Why a slicing problem has no answer, in a sentence. Of use inside stage_slicing only.
#pragma once

#include <string>

#include "planner/solvers/stage_slicing.hpp"

namespace planner {

// Of sizes that make no problem; empty when they do.
std::string senseless(const SlicingProblem& problem);

// Of a problem that has been found to have no slicing.
std::string why_unsliceable(const SlicingProblem& problem);

}  // namespace planner
