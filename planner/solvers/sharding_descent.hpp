// Sharding graphs too wide to eliminate. Of use inside best_sharding only.
#pragma once

#include <functional>

#include "planner/solvers/sharding_graph.hpp"

namespace planner {

// By the integer programming solver where it is built in. Without: the bound of the same problem
// without the edges that make it too wide (each counted at its least), and the best choice that
// changing one node at a time reaches from that problem's. Such a choice may be missed where memory
// is tight; the reason says so.
Sharding best_of_wide(const ShardingProblem& problem, const ShardingGraph& graph,
                      const EliminationOrder& order, const std::function<bool()>& expired,
                      const ShardingLimits& limits);

}  // namespace planner
