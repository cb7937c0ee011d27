// The rows of virtual stages: layers summed to stages, what runs beside them, ZeRO's communication
// within a micro-batch; and the transfers between neighbouring stages.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "costmodel/estimate/plan_cost.hpp"
#include "costmodel/estimate/plan_inputs.hpp"

namespace costmodel {

// Parameters by kind of pipeline rank.
std::vector<RankParameters> rank_weights(const PlanInputs& in);

// The rows of the stages, in the storage of rows that nobody needs any more. `weights` are by kind
// of rank.
std::vector<StageRow> stage_rows(const PlanInputs& in, std::span<const RankParameters> weights,
                                 std::vector<StageRow> spent);

// Bytes of the hidden states of `tokens` tokens of every sequence of a micro-batch.
Bytes passed_on(const ParallelPlan& plan, std::int64_t tokens, const Workload& on);

// Transfer of a micro-batch's activations (and in backward their gradients) of `tokens` tokens of
// every sequence to the next stage.
StageTransfer transfer_of(const ParallelPlan& plan, std::int64_t tokens, const Workload& on);

// The transfers of a pipeline, one for all boundaries or, with an encoder, one for each.
struct Transfers {
  StageTransfer longest;                  // time and bytes, each the most of all boundaries
  std::vector<StageBoundary> boundaries;  // empty where all are alike
};
Transfers transfers_of(const PlanInputs& in);

// Durations by virtual stage, in the storage of earlier ones.
PipelineTimes stage_times(const PlanInputs& in, std::span<const StageRow> rows,
                          const Transfers& transfers, const Offload& offload, PipelineTimes spent);

// Trained parameters of the head of stage k that are the embedding's, where the stage has both.
double shared_table(const PlanInputs& in, std::size_t k);

}  // namespace costmodel
