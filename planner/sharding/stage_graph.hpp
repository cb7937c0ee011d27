// One pipeline stage as a sharding problem. Nodes are the operators of its layers, unsharded (t =
// 1), on all tokens of a micro-batch, with every strategy on the stage's mesh. Edges hold the cost
// of resharding a tensor and, in backward, its gradient.
//
// The objective is the stage's time per iteration: all micro-batches and what follows them.
#pragma once

#include <compare>
#include <vector>

#include "costmodel/estimate/estimate.hpp"
#include "costmodel/operators/op_list.hpp"
#include "planner/sharding/operator_strategy.hpp"

namespace planner {

struct StageLayer {
  costmodel::LayerKind kind = costmodel::LayerKind::block;
  costmodel::Recomputed again = costmodel::Recomputed::nothing;
  auto operator<=>(const StageLayer&) const = default;
};

struct StageSpec {
  std::vector<StageLayer> layers;  // embedding first and head last, if the stage has them
  DeviceMesh mesh;
  std::int64_t micro_batch = 1;  // sequences, over the complete mesh
  std::int64_t micro_batches = 1;
  double in_flight = 1;     // micro-batches in flight
  costmodel::Bytes memory;  // per device, for states and kept activations
  // A micro-batch's passes over the stage, beside which collectives of weights run; 0: nothing.
  costmodel::Seconds forward, backward;
};

// The operators of identical layers, with their strategies.
struct LayerOperators {
  StageLayer layer;
  costmodel::OpList list;
  std::vector<OperatorSite> sites;                        // same order as list.nodes
  std::vector<std::vector<OperatorStrategy>> strategies;  // by site
};

struct StageNode {
  int kind = 0;   // index in StageGraph::kinds
  int layer = 0;  // index in StageSpec::layers
  int site = 0;
};

struct StageGraph {
  StageSpec spec;
  std::vector<LayerOperators> kinds;
  // Without an embedding, the first problem node is the stage's input, which may have any layout.
  // Then follows one problem node per element of `nodes`, in order.
  std::vector<StageNode> nodes;
  bool has_input = false;
  std::vector<TensorLayout> input_layouts;  // the layouts of its choices
  ShardingProblem problem;

  const OperatorSite& site(std::size_t node) const;
  // The strategy of an element of `nodes` under a choice of the problem.
  const OperatorStrategy& strategy(std::size_t node, const std::vector<int>& choice) const;
};

// Never throws; a problem without a feasible strategy reports that when it is solved. `evaluator`
// supplies the model, the cluster and the training.
StageGraph stage_graph(const StageSpec& spec, const costmodel::Evaluator& evaluator);

// The critical stage of an estimated plan, on its own mesh. Its memory is `limit` bytes per device
// less the plan's contexts, the allocator's reserve and the working tensors of its largest layer.
StageSpec critical_stage(const costmodel::Estimate& estimate, costmodel::Bytes limit,
                         costmodel::Evaluator& evaluator);

}  // namespace planner
