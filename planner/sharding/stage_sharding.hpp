// The best sharding of a plan's critical stage on its own mesh, beside the plan's own, and both
// told operator by operator.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "planner/sharding/megatron_sharding.hpp"
#include "planner/sharding/stage_graph.hpp"

namespace planner {

struct StageSharding {
  StageGraph graph;
  Sharding found;
  HandSharding hand;
};

StageSharding shard_stage(const StageSpec& spec, const costmodel::ParallelPlan& plan,
                          const costmodel::Evaluator& evaluator,
                          const std::function<bool()>& expired = {});

// Layers of a stage that are alike and sharded alike.
struct AlikeLayers {
  int kind = 0;                    // of StageGraph::kinds
  std::vector<int> layers;         // of StageSpec::layers
  std::vector<std::size_t> nodes;  // of StageGraph::nodes: the operators of the first of them
};
std::vector<AlikeLayers> alike_layers(const StageGraph& graph, const std::vector<int>& choice);

// "6 layers", "embedding", "5 of 6 layers".
std::string told(const StageGraph& graph, const AlikeLayers& alike);

// Seconds of an iteration that tensors take to come to an operator in its layout, and their
// gradients back.
costmodel::Seconds resharding_time(const StageGraph& graph, std::size_t node,
                                   const std::vector<int>& choice);

}  // namespace planner
