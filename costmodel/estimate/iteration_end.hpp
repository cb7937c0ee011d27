// The end of an iteration after its pipeline: gradient reduction, optimizer, parameter gather, host
// time and stragglers; and the lower bound of the complete iteration.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "costmodel/estimate/plan_cost.hpp"
#include "costmodel/estimate/plan_inputs.hpp"
#include "costmodel/schedule/simulator.hpp"

namespace costmodel {

// The parameters that a rank updates.
inline double own_parameters(const ParallelPlan& plan, const RankWeights& rank) {
  return plan.zero < 1 ? rank.all : sharded_states(rank.all, rank.experts, plan);
}

// Memory traffic of an optimizer step. It clears the gradient buffers of `gradients` parameters;
// computes the norm, unscales and clips over its `own` parameters, or all of them where ZeRO-1
// keeps them unsharded; Adam reads the gradient, reads and writes its states, and writes the
// parameters (SimuMax counts the same passes).
Bytes optimizer_traffic(double own, double gradients, const TrainingSpec& training);
inline constexpr int optimizer_passes = 5;
// The framework's own kernels for it, clipping included, on a rank with these parameters; nothing
// where its set has none for the optimizer.
std::optional<KernelTime> optimizer_kernels(const ParallelPlan& plan, const Workload& on,
                                            const RankWeights& rank);

// By kind of pipeline rank.
std::vector<AfterPipeline> after_pipeline(const PlanInputs& in,
                                          std::span<const RankParameters> weights,
                                          std::span<const StageRow> rows);

// With one queue of collectives a stage sends the gradient of its last micro-batch after its own
// reduction, what of which is exposed delays all stages before it.
void wait_for_later_stages(const ParallelPlan& plan, const TrainingSpec& training,
                           std::span<RankRow> ranks);

// What is exposed of a rank's gradient reduction alone, without those that it waits for.
Seconds own_reduction(const ParallelPlan& plan, const TrainingSpec& training,
                      std::span<const RankRow> ranks, std::size_t rank);

// The ranks with a copy of the token table: the first; with an encoder, the one where the decoder
// starts; with tied embeddings, the last. Empty if only one has it.
std::vector<std::size_t> table_ranks(const ModelSpec& model, std::span<const LayerMix> mixes,
                                     std::size_t last);

TableSum table_sum(const PlanInputs& in);

// Terms of an iteration outside its pipeline: host time, the factor for the slowest node, and
// whether ranks end independently, without synchronising at the gradient norm.
struct EndTerms {
  Seconds host;
  double straggler = 1;
  bool apart = false;
  double own_runs = 1;  // the time factor of the cluster's own runs
  double factor() const { return straggler * own_runs; }
};
EndTerms end_terms(const ParallelPlan& plan, const Workload& on);

// Of `micro_batches` micro-batches. Where boundaries differ, each counts as the shortest. The
// first: of the pipeline alone, in the plan's order but for these choices.
Seconds pipeline_bound(const ParallelPlan& plan, const OrderChoices& choices,
                       std::int64_t micro_batches, const PipelineTimes& times);
Bounds bounds_of(const ParallelPlan& plan, std::int64_t micro_batches, const PipelineTimes& times,
                 std::span<const RankRow> ranks, const TableSum& tables, const EndTerms& terms);

struct Ending {
  Seconds iteration;
  Seconds meeting;           // time when the last rank's gradients are reduced
  Seconds waiting;           // total wait for the slowest node
  std::size_t critical = 0;  // the rank that determines the time
  Seconds optimizer, gather;
  // On all that precedes, in `iteration` alone: the time factor of the cluster's own runs.
  double own_runs = 1;
  Seconds
      begin;  // start of the critical rank's span, where ranks end apart; its parts count from it
};

// With the wait and the iteration that follow from the other parts.
Ending ended(Ending end, const EndTerms& terms);

// Whether ranks end an iteration without waiting for one another: zero-bubble schedules whose
// optimizer steps are validated afterwards (Qi et al. 2024, arXiv:2401.10241, section 4).
bool ends_apart(ScheduleKind kind, const StackCollectives& collectives);

// The time of the pipeline alone: from its first start to its last end, or, where ranks end apart,
// the longest span of one rank.
Seconds pipeline_of(const SimulationResult& run, bool apart);

// The time when a rank's gradients are reduced, if its pipeline ended at `end`.
Seconds reduced(Seconds end, const PlanCost& cost, std::size_t rank);

Ending ending(const PlanCost& cost, const SimulationResult& run, const EndTerms& terms);

}  // namespace costmodel
