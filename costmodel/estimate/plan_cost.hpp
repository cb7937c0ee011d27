// The stage-cost table of a plan: a row a virtual stage, a row a pipeline rank, and what follows
// from them. Each part of a row is what one function returns (stage_cost, iteration_end, memory),
// so that no figure can be read before it is computed; a PlanCost is complete when anyone sees it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "costmodel/base/units.hpp"
#include "costmodel/cost/layer_cost.hpp"
#include "costmodel/estimate/layer_mix.hpp"
#include "costmodel/schedule/stage_times.hpp"
#include "costmodel/schedule/zero_bubble.hpp"

namespace costmodel {

// A virtual stage: one micro-batch on one of its devices.
struct StageRow {
  LayerMix layers;
  Cost forward, backward;
  Cost recompute;
  Cost weight_gradient;                 // of a split backward, which `backward` includes; else zero
  Seconds zero_forward, zero_backward;  // exposed ZeRO gathers and reductions
  // Of those that are hidden: in waits for the host's launches, which its lead does not spare.
  Seconds gathers_in_waits_forward, gathers_in_waits_backward;
  Seconds zero_sent_forward, zero_sent_backward;  // of groups of shards: all, hidden ones as well
  Seconds copies_forward, copies_backward;  // in the above: copies of sharded parameters, additions
                                            // of gradients, and the host's launches of them
  Seconds hidden_forward, hidden_backward;  // not in the above: waits for launches that the host's
                                            // lead spares
  Seconds lead;                             // of the host, after an iteration's last micro-batch
  Seconds head_lead;                        // what the head's forward adds to it
  // With packed samples: attention of the rank with the longest ones beyond the mean's.
  Seconds longest_forward, longest_backward;
};

// The rows of all virtual stages. Stages that are alike share one, so that a search pays for few.
class StageRows {
 public:
  using Index = std::shared_ptr<const std::vector<std::size_t>>;  // of the row, by virtual stage
  StageRows() = default;
  StageRows(std::vector<StageRow> rows, Index row_of)
      : rows_(std::move(rows)), row_of_(std::move(row_of)) {}
  std::size_t size() const { return row_of_ == nullptr ? 0 : row_of_->size(); }
  const StageRow& operator[](std::size_t stage) const { return rows_[(*row_of_)[stage]]; }
  // Gives its storage away.
  std::vector<StageRow> storage() && { return std::move(rows_); }

 private:
  std::vector<StageRow> rows_;
  Index row_of_;
};

// Trained parameters on one device of a pipeline rank, and what its frozen ones take.
struct RankWeights {
  double all = 0;
  double experts = 0;  // those of experts among them
  double partial = 0;  // those with gradients summed over tensor ranks
  Bytes frozen, frozen_experts;
  Seconds casts;  // of weights that are kept narrow, once an iteration
  bool operator==(const RankWeights&) const = default;
};

// The same with what an optimizer that treats parameters unlike keeps of them.
struct RankParameters : RankWeights {
  OptimizerShare optimizer;
};

// What follows a rank's last micro-batch.
struct AfterPipeline {
  Seconds gradient_exposed;  // gradient reduction not hidden by backward
  Seconds gather_exposed;    // parameter gather not hidden by forward
  Seconds optimizer;         // its step, and casts of weights that are kept narrow
};

// Memory of one device of a pipeline rank in the steady state (optimizer states exist, all
// in-flight micro-batches are held).
struct StageMemory {
  Bytes weights;
  Bytes gradients;
  Bytes optimizer;
  Bytes activations;  // kept by in-flight micro-batches, and the working tensors of the layer being
                      // computed
  Bytes widened;      // fp32 copies of gradients, in the step, when there are no activations
  Bytes buffers;      // transfers, gathered parameters, contexts, allocator reserve
  Bytes host;         // states kept in host memory (plan.offload), not in the total
  Bytes pinned;       // page-locked there: activations, and what is on its way to drives
  Bytes drives;
  double in_flight_micro_batches = 0;
  Bytes each;  // total's increase per micro-batch in flight, on a rank with one chunk
  bool peaks_in_step() const { return widened > activations; }
  Bytes total() const {
    return weights + gradients + optimizer + max(activations, widened) + buffers;
  }
};

// A pipeline rank: one of its devices.
struct RankRow {
  RankWeights weights;
  AfterPipeline after;
  StageMemory memory;
};

// Transfer of one micro-batch between two stages with different sharding: each device sends and
// receives its own part, and pieces are gathered over the receiver's tensor group.
struct StageTransfer {
  Seconds time;
  Bytes sent;      // sent by one device
  Bytes gathered;  // sent by one device in the gather; 0 without one
};
struct StageBoundary {
  StageTransfer forward, backward;
};

// The sum of the gradients of the token table's copies.
struct TableSum {
  Seconds time;                    // of the all-reduce
  std::vector<std::size_t> ranks;  // with a copy; empty if only one has it
};

// Activations in host memory.
struct Offload {
  int layers = 0;
  Seconds forward, backward;  // exposed transfers per micro-batch
  bool every_stage = false;   // of modules: each stage's layers send theirs
  Seconds exposed() const { return forward + backward; }
};

struct Bounds {
  Seconds pipeline;   // no schedule of these stages takes less
  Seconds iteration;  // nor does the simulated iteration
};

// Everything about a plan that needs no simulation.
struct PlanCost {
  std::int64_t micro_batches = 0;
  StageRows stages;
  std::vector<RankRow> ranks;  // by pipeline rank
  PipelineTimes times;         // by virtual stage: forward and backward of one micro-batch
  HeldShares shares;           // for a split backward, else empty
  TableSum tables;
  Bytes transfer_bytes;                   // per device, of one pipeline transfer
  Bytes gradient_bytes;                   // gradient message of the largest rank
  std::vector<StageBoundary> boundaries;  // after each stage but the last; heterogeneous only
  std::vector<Bytes> capacity;            // by rank; heterogeneous stages only
  std::size_t fullest = 0;  // the rank with the highest memory use relative to its capacity
  Bytes peak;               // of the fullest rank
  Bytes host;               // of a node's host memory, what its ranks keep there and its buffers
  Bytes drives;             // ... and of its NVMe drives
  bool in_host = true;      // both hold it, as far as is known
  Offload offload;
  OptimizerShare optimizer;  // of rank 0, from an optimizer that treats parameters unlike
  Bounds bound;

  // Whether it needs at most `limit` of each device.
  bool within(Bytes limit) const { return peak <= limit && in_host; }
  bool sums_table(std::size_t rank) const {
    return std::find(tables.ranks.begin(), tables.ranks.end(), rank) != tables.ranks.end();
  }
};

struct PlanInputs;  // costmodel/estimate/plan_inputs.hpp

// `spent` is a table that nobody needs any more: the new one takes over its storage.
PlanCost plan_cost(const PlanInputs& in, PlanCost&& spent = {});

}  // namespace costmodel
