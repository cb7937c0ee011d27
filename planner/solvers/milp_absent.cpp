// Replaces milp.cpp in builds without CBC.
#include "planner/solvers/milp.hpp"

namespace planner {

bool milp_available() { return false; }

Sharding solve_milp(const ShardingProblem&, double) {
  Sharding none;
  none.method = ShardingMethod::integer_program;
  none.lower_bound = -std::numeric_limits<double>::infinity();
  none.reason = "built without an integer programming solver";
  return none;
}

}  // namespace planner
