// A sharding as a plan: the plan whose own sharding of the stage is nearest to a choice of its
// problem, so that every command takes what the integer program finds.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "planner/sharding/megatron_sharding.hpp"

namespace planner {

struct ShardedPlan {
  costmodel::ParallelPlan plan;
  HandSharding own;                 // the plan's sharding of the stage
  std::vector<std::size_t> unlike;  // of StageGraph::nodes: operators that it cuts otherwise
  costmodel::Seconds unlike_gain;   // what these gain an iteration, by the problem's prices
};

// Of the plans whose ranks use whole axes of the mesh (data, tensor and context parallel, experts
// dealt out over axes, any ZeRO stage), with the base plan's pipeline and recomputation and as many
// sequences in a micro-batch, and that `allowed` lets pass: the one that cuts the fewest operators
// otherwise; of equals the fastest by the problem's prices. Empty: none has a sharding of this
// stage.
std::optional<ShardedPlan> nearest_plan(
    const StageGraph& graph, const std::vector<int>& choice, const costmodel::ParallelPlan& base,
    const std::function<bool(const costmodel::ParallelPlan&)>& allowed);

}  // namespace planner
