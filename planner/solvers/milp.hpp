// The sharding problem as Alpa's integer linear program (Zheng et al. 2022, arXiv:2201.12023,
// section 4.2, equation 1, with the quadratic term made linear), solved by COIN-OR CBC: an
// independent witness of the elimination, and what takes graphs too wide for it.
#pragma once

#include "planner/solvers/sharding_problem.hpp"

namespace planner {

// Whether the program was built with CBC.
bool milp_available();

// Solves for at most so many seconds of this process (so the answer of a problem that takes longer
// depends on the machine). Without CBC, or with nothing found in time, a Sharding with a reason.
Sharding solve_milp(const ShardingProblem& problem, double most_seconds);

}  // namespace planner
