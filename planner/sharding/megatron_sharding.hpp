// The plan's own way to run a stage, as people wrote it down: Megatron-LM's tensor, sequence and
// expert parallelism and its data parallelism with the plan's ZeRO stage, as one choice among the
// strategies.
#pragma once

#include <string>
#include <vector>

#include "costmodel/plan/parallel_plan.hpp"
#include "planner/sharding/stage_graph.hpp"

namespace planner {

struct HandSharding {
  std::vector<int> choice;  // of the stage's problem; empty when it is none of its choices
  ShardingPrice price;
  std::string reason;  // why there is none
};

// Rings of context parallelism and experts on ranks that are no axis of the mesh are none of the
// strategies.
HandSharding hand_sharding(const StageGraph& graph, const costmodel::ParallelPlan& plan);

}  // namespace planner
