#include "costmodel/estimate/hidden_time.hpp"

#include "costmodel/base/error.hpp"
#include "costmodel/estimate/breakdown.hpp"
#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/estimate/iteration_end.hpp"
#include "costmodel/estimate/pipelines_together.hpp"

namespace costmodel {

namespace {

// What one rank's communication adds, by kind. Pipeline transfers are not in it.
HiddenTime added_by(const PlanCost& cost, const ParallelPlan& plan, std::size_t rank,
                    const Workload& on) {
  const Breakdown parts = micro_batch_parts(cost, plan, rank, on.training.stack.host);
  Seconds gather = cost.ranks[rank].after.gather_exposed;
  if (!end_terms(plan, on).apart) {
    for (const RankRow& other : cost.ranks) gather = max(gather, other.after.gather_exposed);
  }
  return {
      .tp_comm = parts.tp_comm,
      .cp_comm = parts.cp_comm,
      .ep_comm = parts.ep_comm,
      .pp_comm = {},
      .dp_comm = parts.dp_comm + cost.ranks[rank].after.gradient_exposed + gather,
      .offload = static_cast<double>(cost.micro_batches) / plan.ways() * cost.offload.exposed()};
}

Seconds hidden(Seconds alone, Seconds exposed) { return max(Seconds(0), alone - exposed); }

}  // namespace

Seconds sends_alone(const PlanCost& cost, const ParallelPlan& plan, std::size_t rank) {
  if (!row_of(plan.schedule).waits) return {};
  const PipelineTimes& times = cost.times;
  const int last = plan.virtual_stages() - 1;
  Seconds all;
  for (int v = 0; v < plan.chunks(); ++v) {
    const int stage = stage_of(plan.schedule, plan.pp, v, static_cast<int>(rank));
    const auto leaves = [&](int to) {
      return to >= 0 && to <= last && rank_of(plan.schedule, plan.pp, to) != static_cast<int>(rank);
    };
    const bool alike = times.forward_transfer.empty();
    const auto k = static_cast<std::size_t>(stage);
    if (leaves(stage + 1)) all += alike ? times.transfer : times.forward_transfer[k];
    if (leaves(stage - 1)) all += alike ? times.transfer : times.backward_transfer[k - 1];
  }
  return static_cast<double>(cost.micro_batches) / plan.ways() * all;
}

HiddenTime hidden_time(const Estimate& estimate, Evaluator& whole) {
  const PlacedPipelines pipelines(estimate.plan, whole);
  for (const PlacedPipeline& one : pipelines) {
    const ParallelPlan& plan = one.pipeline.plan;
    const int rank_of_pipeline = estimate.critical_rank - one.pipeline.first_stage;
    if (rank_of_pipeline < 0 || rank_of_pipeline >= plan.pp) continue;
    const auto rank = static_cast<std::size_t>(rank_of_pipeline);
    const Workload& on = one.evaluator->workload();
    TrainingSpec apart = on.training;
    apart.overlap.nothing_hidden = true;
    Evaluator nothing_hidden(on.model, on.cluster, apart);
    const HiddenTime alone = added_by(nothing_hidden.cost(plan), plan, rank, on);
    const PlanCost& cost = one.evaluator->cost(plan);
    const HiddenTime exposed = added_by(cost, plan, rank, on);
    return {.tp_comm = hidden(alone.tp_comm, exposed.tp_comm),
            .cp_comm = hidden(alone.cp_comm, exposed.cp_comm),
            .ep_comm = hidden(alone.ep_comm, exposed.ep_comm),
            .pp_comm = hidden(sends_alone(cost, plan, rank), estimate.breakdown.pp_comm),
            .dp_comm = hidden(alone.dp_comm, exposed.dp_comm),
            .offload = hidden(alone.offload, exposed.offload)};
  }
  throw InternalError("the critical rank is on no pipeline");
}

}  // namespace costmodel
