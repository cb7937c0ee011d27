// Memory of each pipeline rank in the steady state, and what of it waits in host memory.
#pragma once

#include <span>
#include <vector>

#include "costmodel/estimate/plan_cost.hpp"
#include "costmodel/estimate/plan_inputs.hpp"
#include "costmodel/schedule/schedule.hpp"
#include "costmodel/schedule/timeline.hpp"

namespace costmodel {

// The rows of the ranks, in the storage of rows that nobody needs any more. `weights` and `after`
// are by kind of rank; `transfer` are the bytes that a device sends to the next stage for a
// micro-batch.
std::vector<RankRow> rank_rows(const PlanInputs& in, std::span<const RankParameters> weights,
                               std::span<const AfterPipeline> after, Bytes transfer,
                               std::vector<RankRow> spent);

// Where a product adds its weight gradient to the main gradients itself, autograd gets a tensor
// that is never written, made once for each shape (TransformerEngine, pytorch/module/base.py,
// get_dummy_wgrad; Megatron-LM, core/tensor_parallel/layers.py): what these take on a rank.
Bytes dummy_gradients(const PlanInputs& in, std::size_t rank);

// The fp32 copies that an optimizer makes of its shard of 16-bit gradients before its step
// (Megatron-LM, core/optimizer/distrib_optimizer.py, _copy_model_grads_to_main_grads).
Bytes widened_gradients(const PlanInputs& in, const RankWeights& rank);

// How the memory of each rank of a plan without own sizes of stages changes with what is in flight.
std::vector<RankMemory> memory_over_time(const PlanInputs& in, const PlanCost& cost);
// The same for stages with sizes of their own, with one chunk each.
std::vector<RankMemory> memory_over_time(std::span<const RankRow> ranks);

// The micro-batches that each chunk of a rank holds where the rank holds most; of an order that is
// not counted by chunk as many of all as would hold as much.
std::vector<double> held_by_chunk(const PlanInputs& in, const RankRow& row, std::size_t rank);

// What a micro-batch holds on a virtual stage as a share of what it holds on its rank, for a
// schedule that splits the backward; else empty.
HeldShares held_shares(const PlanInputs& in);

// What each rank holds at most in the order that a schedule with split backward came to have, in
// place of the limit for which it is generated (searches know that alone): never more.
void follow_order(const PlanInputs& in, const Schedule& schedule, PlanCost& cost);

// Activation offloading: what does not fit is sent to host memory in forward and fetched in
// backward, layer by layer, concurrently with the computation (Transformer Engine's
// get_cpu_offload_context; Megatron-LM's --cpu-offloading-num-layers, whose rules are applied
// here).
Offload offload_of(const PlanInputs& in);

// What stays on the device where some layers are sent.
StageMemory without_offloaded(const PlanInputs& in, const Offload& offload, StageMemory memory);

}  // namespace costmodel
