// The sharding problem as Alpa's integer linear program (Zheng et al. 2022, arXiv:2201.12023,
// section 4.2, equation 1, with the quadratic term linearised), solved by COIN-OR CBC. It is an
// independent check of the elimination, and solves graphs that are too wide for it.
#pragma once

#include "planner/solvers/sharding_problem.hpp"

namespace planner {

// Whether Shardplan was built with CBC.
bool milp_available();

// Solves within `most_seconds` of this process's time, so that a result at the limit depends on the
// machine. Without CBC, or without a solution in time, the result has a `reason`.
Sharding solve_milp(const ShardingProblem& problem, double most_seconds);

}  // namespace planner
