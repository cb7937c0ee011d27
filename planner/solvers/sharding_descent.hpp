// Sharding graphs that are too wide for elimination. Internal to best_sharding.
#pragma once

#include <functional>

#include "planner/solvers/sharding_graph.hpp"

namespace planner {

// Uses the integer programming solver if it is built in. Otherwise edges are dropped, each counted
// at its minimum, until the graph can be eliminated: the solution of that problem gives the lower
// bound and the start of a descent that changes one node at a time. The descent may find no choice
// when memory is tight; the reason then says so.
Sharding best_of_wide(const ShardingProblem& problem, const ShardingGraph& graph,
                      const EliminationOrder& order, const std::function<bool()>& expired,
                      const ShardingLimits& limits);

}  // namespace planner
