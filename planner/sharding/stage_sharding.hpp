// The best sharding of a plan's critical stage on its own mesh, compared with the plan's own
// sharding, by operator.
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

// Identical layers of a stage with identical shardings.
struct AlikeLayers {
  int kind = 0;                    // index in StageGraph::kinds
  std::vector<int> layers;         // indices in StageSpec::layers
  std::vector<std::size_t> nodes;  // in StageGraph::nodes: operators of the first layer
};
std::vector<AlikeLayers> alike_layers(const StageGraph& graph, const std::vector<int>& choice);

// Text: "6 layers", "embedding", "5 of 6 layers".
std::string told(const StageGraph& graph, const AlikeLayers& alike);

// Seconds per iteration to reshard an operator's inputs to its layout, and their gradients back.
costmodel::Seconds resharding_time(const StageGraph& graph, std::size_t node,
                                   const std::vector<int>& choice);

}  // namespace planner
