// Explains why a slicing problem has no solution. Internal to stage_slicing.
#pragma once

#include <string>

#include "planner/solvers/stage_slicing.hpp"

namespace planner {

// Why the sizes of a problem are inconsistent; empty when they are consistent.
std::string senseless(const SlicingProblem& problem);

// Why a problem without a solution has none, in a sentence.
std::string why_unsliceable(const SlicingProblem& problem);

}  // namespace planner
