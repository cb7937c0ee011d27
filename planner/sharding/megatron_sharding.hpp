// The plan's own sharding of a stage as one choice of the sharding problem: Megatron-LM's tensor,
// sequence, context and expert parallelism, and data parallelism with the plan's ZeRO stage.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "costmodel/plan/parallel_plan.hpp"
#include "planner/sharding/stage_graph.hpp"

namespace planner {

// What the ranks along a mesh axis are to a plan: data, tensor or context parallel, whose ranks
// exchange keys and values around a ring or sequence shards for head shards (DeepSpeed-Ulysses).
enum class AxisUse { data, tensor, ring, heads };

struct AxisUses {
  std::array<AxisUse, 2> use{AxisUse::data, AxisUse::data};
  std::array<bool, 2> experts{false, false};  // whether experts are dealt out to its ranks
  bool sequence_parallel = false;
  int zero = 0;
};

// A plan's uses of a mesh; `reason`: why it is no use of whole axes.
struct UsesOfPlan {
  AxisUses uses;
  std::string reason;
};
UsesOfPlan uses_of(const costmodel::ParallelPlan& plan, const DeviceMesh& mesh);

struct HandSharding {
  std::vector<int> choice;  // a choice of the stage's problem; empty when it has no such choice
  ShardingPrice price;
  std::string reason;  // why there is no choice
};

HandSharding hand_sharding(const StageGraph& graph, const AxisUses& uses);
HandSharding hand_sharding(const StageGraph& graph, const costmodel::ParallelPlan& plan);

}  // namespace planner
