// What sharded parameters cost the device itself, however few ranks share them: casts and copies
// into and out of the buffers of gathers and reduce-scatters (ZeRO 3 gathers twice, frozen weights
// too; ZeRO 2 scatters alone), and the addition of the gradients of every micro-batch after the
// first. Where the framework's kernels are known (plan/kernel_set); else nothing.
#pragma once

#include <cstddef>

#include "costmodel/estimate/plan_cost.hpp"
#include "costmodel/estimate/plan_inputs.hpp"

namespace costmodel {

// Of one layer and micro-batch.
struct ShardCopies {
  StepKernels forward, backward;
};
// `less`: parameters of the layer that another one has. `end`: an embedding or a head, which FSDP
// keeps from forward to backward as parts of its root (torch/distributed/fsdp/_fully_shard/
// _fsdp_state.py, _lazy_init) or as what backward begins with.
struct ShardedUnit {
  double less = 0;
  bool end = false;
};
ShardCopies shard_copies(const LayerCost& layer, const ShardedUnit& unit, const ParallelPlan& plan,
                         const Workload& on, std::int64_t micro_batches);

// Adds them to the passes of virtual stage `k`, whose layers `row` sums, before anything slows them
// down. A layer at a time, as the host launches them with the layer's own kernels, so that stages
// with the same layers have the same work.
void add_copies(const PlanInputs& in, std::size_t k, StageRow& row);

}  // namespace costmodel
