// The plan's own sharding of a stage as one choice of the sharding problem: Megatron-LM's tensor,
// sequence and expert parallelism, and data parallelism with the plan's ZeRO stage.
#pragma once

#include <string>
#include <vector>

#include "costmodel/plan/parallel_plan.hpp"
#include "planner/sharding/stage_graph.hpp"

namespace planner {

struct HandSharding {
  std::vector<int> choice;  // a choice of the stage's problem; empty when it has no such choice
  ShardingPrice price;
  std::string reason;  // why there is no choice
};

// The strategies do not include ring attention, or experts on ranks that do not form an axis of the
// mesh.
HandSharding hand_sharding(const StageGraph& graph, const costmodel::ParallelPlan& plan);

}  // namespace planner
