// One stage of a pipeline as a sharding problem: the operators of its layers as one device would
// execute them on all tokens of a micro-batch (t = 1), with every way to run each on the stage's
// mesh, and between them what it costs to bring a tensor from layout to layout and its gradient
// back.
//
// The objective is the stage's time in one iteration: all micro-batches and what follows them.
#pragma once

#include <compare>
#include <vector>

#include "costmodel/estimate/evaluator.hpp"
#include "planner/sharding/operator_strategy.hpp"

namespace planner {

struct StageLayer {
  costmodel::LayerKind kind = costmodel::LayerKind::block;
  costmodel::Recomputed again = costmodel::Recomputed::nothing;
  auto operator<=>(const StageLayer&) const = default;
};

struct StageSpec {
  std::vector<StageLayer> layers;  // embedding first and head last, where the stage has them
  DeviceMesh mesh;
  std::int64_t micro_batch = 1;  // sequences on the whole mesh
  std::int64_t micro_batches = 1;
  double in_flight = 1;     // micro-batches whose activations are kept at once
  costmodel::Bytes memory;  // of a device, for states and kept activations
};

// Operators of layers that are alike, with their strategies.
struct LayerOperators {
  StageLayer layer;
  costmodel::OpList list;
  std::vector<OperatorSite> sites;                        // as list.nodes
  std::vector<std::vector<OperatorStrategy>> strategies;  // of each
};

struct StageNode {
  int kind = 0;   // of StageGraph::kinds
  int layer = 0;  // of StageSpec::layers
  int site = 0;
};

struct StageGraph {
  StageSpec spec;
  std::vector<LayerOperators> kinds;
  // The first problem node is the stage's input where the stage has no embedding, free in any
  // layout; then one for each of `nodes`, in order.
  std::vector<StageNode> nodes;
  bool has_input = false;
  std::vector<TensorLayout> input_layouts;  // its choices
  ShardingProblem problem;

  const OperatorSite& site(std::size_t node) const;
  // Of a node of `nodes`, by a choice for the problem.
  const OperatorStrategy& strategy(std::size_t node, const std::vector<int>& choice) const;
};

// Never throws; where no strategy can be carried out the problem says so when it is solved.
// `evaluator` knows the model, the cluster and the training.
StageGraph stage_graph(const StageSpec& spec, const costmodel::Evaluator& evaluator);

// The stage of an estimated plan that its iteration waits for, on its own mesh, below `limit` bytes
// of a device: of these the plan's contexts, the allocator's reserve and the working tensors of its
// largest layer are taken.
StageSpec critical_stage(const costmodel::Estimate& estimate, costmodel::Bytes limit,
                         costmodel::Evaluator& evaluator);

}  // namespace planner
