#include "costmodel/estimate/breakdown.hpp"

#include <cmath>
#include <tuple>

#include "costmodel/estimate/layer_mix.hpp"
#include "costmodel/estimate/zero_plus_plus.hpp"
#include "costmodel/machine/cluster_groups.hpp"
#include "costmodel/schedule/closed_form.hpp"

namespace costmodel {

namespace {

// Transfers of one micro-batch between heterogeneous stages: sent forward and backward, and
// gathered by the receiver.
Traffic boundary_traffic(const PlanCost& c, std::size_t stage) {
  Traffic sum;
  if (stage < c.boundaries.size()) {
    const StageBoundary& behind = c.boundaries[stage];
    sum.add(CollectiveKind::send, behind.forward.sent);
    sum.add(CollectiveKind::all_gather, behind.backward.gathered);
  }
  if (stage > 0) {
    const StageBoundary& before = c.boundaries[stage - 1];
    sum.add(CollectiveKind::send, before.backward.sent);
    sum.add(CollectiveKind::all_gather, before.forward.gathered);
  }
  return sum;
}

// Among the ranks that hold the same weights, of gradients and of sharded parameters.
Traffic replica_traffic(const RankWeights& own, const ParallelPlan& plan,
                        const TrainingSpec& training, double micro_batches) {
  Traffic sum;
  const double reductions = plan.zero >= 2 ? micro_batches : 1;
  const auto reduce = gradient_reduction(plan.zero, training);
  const auto gather = parameter_gather(plan.zero, training);
  const bool in_forward = gathers_in_forward(plan, training);
  const double gathers = plan.zero == 3 ? 2 * micro_batches
                         : in_forward   ? micro_batches
                                        : std::min(plan.zero, 1);
  for (const auto& [held, frozen, ranks_of] :
       {std::tuple{own.all - own.experts, own.frozen - own.frozen_experts,
                   std::int64_t{plan.shards()}},
        std::tuple{own.experts, own.frozen_experts, plan.expert_shards()}}) {
    const int group = static_cast<int>(ranks_of);
    const Bytes gradients(held * gradient_bytes_per_parameter(training));
    Bytes weights(held * gather_bytes_per_parameter(training));
    if (in_forward) weights += frozen;
    sum.add(reduce, collective_bytes(reduce, gradients, group) * reductions);
    sum.add(gather, collective_bytes(gather, weights, group) * gathers);
    if (plan.dp_replicate == 1) continue;
    const CollectiveKind outer = outer_reduction(plan);
    sum.add(outer, collective_bytes(outer, gradients / group, plan.dp_replicate));
    if (!plan.shards_states_further()) continue;
    sum.add(CollectiveKind::all_gather,
            collective_bytes(CollectiveKind::all_gather,
                             Bytes(held * gather_bytes_per_parameter(training)) / group,
                             plan.dp_replicate));
  }
  return sum;
}

}  // namespace

Traffic rank_traffic(const PlanCost& c, const ParallelPlan& plan, const Workload& on,
                     std::size_t rank) {
  const TrainingSpec& training = on.training;
  const ModelSpec& model = on.model;
  Traffic sum;
  const double m = static_cast<double>(c.micro_batches) / plan.ways();  // of a chunk
  const std::size_t ranks = c.ranks.size(), stages = c.stages.size();
  for (int v = 0; v < plan.chunks(); ++v) {
    const int stage = stage_of(plan.schedule, plan.pp, v, static_cast<int>(rank));
    const auto k = static_cast<std::size_t>(stage);
    sum += c.stages[k].forward.traffic * m;
    sum += c.stages[k].backward.traffic * m;
    sum += c.stages[k].recompute.traffic * m;
    if (!c.boundaries.empty()) {
      sum += boundary_traffic(c, k) * m;
    } else if (ranks > 1) {
      double sends = 0;
      for (const int next : {stage - 1, stage + 1}) {
        const bool exists = next >= 0 && next < static_cast<int>(stages);
        const bool here =
            plan.ways() == 1 && rank_of(plan.schedule, plan.pp, next) == static_cast<int>(rank);
        if (exists && !here) ++sends;
      }
      sum.add(CollectiveKind::send, c.transfer_bytes * (sends * m));
      if (plan.tp > 1 && training.stack.collectives.scatter_gather && !plan.sequence_parallel) {
        sum.add(CollectiveKind::all_gather,
                c.transfer_bytes * plan.tp * (sends * m * (plan.tp - 1) / plan.tp));
      }
    }
  }
  const double reductions = plan.zero >= 2 ? m : 1;
  const RankWeights& weights = c.ranks[rank].weights;
  sum += plan.zero_plus_plus.any() ? zero_plus_plus_traffic(weights, plan, training, on.cluster, m)
                                   : replica_traffic(weights, plan, training, m);
  const Bytes partial(c.ranks[rank].weights.partial * gradient_bytes_per_parameter(training));
  sum.add(CollectiveKind::all_reduce,
          collective_bytes(CollectiveKind::all_reduce, partial, plan.tp) * reductions);
  if (c.tables.time.value > 0 && c.sums_table(rank)) {
    const double tables = shared_tables(model, plan.tp);
    sum.add(CollectiveKind::all_reduce,
            collective_bytes(CollectiveKind::all_reduce,
                             Bytes(tables * gradient_bytes_per_parameter(training)),
                             static_cast<int>(c.tables.ranks.size())));
  }
  return sum;
}

namespace {

// What of a rank's exchanges hides where forwards and backwards run together.
Seconds hidden_in_cells(const PlanCost& c, const ParallelPlan& plan, int rank) {
  if (!overlaps(plan.schedule)) return {};
  PipelineTimes apart = c.times;
  apart.together.clear();
  return joined_work(plan.schedule, plan.pp, c.micro_batches, apart, rank) -
         joined_work(plan.schedule, plan.pp, c.micro_batches, c.times, rank);
}

}  // namespace

Breakdown micro_batch_parts(const PlanCost& c, const ParallelPlan& plan, std::size_t rank,
                            const StackHost& host) {
  Breakdown b;
  const double m = static_cast<double>(c.micro_batches) / plan.ways();  // of a chunk
  for (int v = 0; v < plan.chunks(); ++v) {
    const auto k =
        static_cast<std::size_t>(stage_of(plan.schedule, plan.pp, v, static_cast<int>(rank)));
    b.compute += m * (c.stages[k].forward.compute + c.stages[k].backward.compute);
    b.recompute += m * c.stages[k].recompute.compute;
    b.tp_comm += m * (c.stages[k].forward.tp_comm + c.stages[k].backward.tp_comm +
                      c.stages[k].recompute.tp_comm);
    b.cp_comm += m * (c.stages[k].forward.cp_comm + c.stages[k].backward.cp_comm +
                      c.stages[k].recompute.cp_comm);
    b.ep_comm += m * (c.stages[k].forward.ep_comm + c.stages[k].backward.ep_comm +
                      c.stages[k].recompute.ep_comm);
    b.dp_comm += m * (c.stages[k].zero_forward + c.stages[k].zero_backward);
    b.imbalance += m * (c.stages[k].longest_forward + c.stages[k].longest_backward);
    b.other += m * host.micro_batch;
  }
  b.ep_comm -= hidden_in_cells(c, plan, static_cast<int>(rank));
  return b;
}

Breakdown breakdown_of(const PlanCost& c, const ParallelPlan& plan, const Ending& end,
                       const Waiting& waiting, const StackHost& host) {
  Breakdown b = micro_batch_parts(c, plan, end.critical, host);
  b.other += static_cast<double>(c.micro_batches) / plan.ways() * c.offload.exposed();
  b.other += host.iteration + end.waiting;
  b.dp_comm += c.ranks[end.critical].after.gradient_exposed + end.gather;
  if (c.sums_table(end.critical)) b.dp_comm += c.tables.time;
  b.optimizer = end.optimizer;
  b.pp_comm = max(Seconds(0), waiting.transfers);
  const Seconds left = end.iteration / end.own_runs - b.total();
  if (std::abs(left.value) < 1e-9 * end.iteration.value) {
    b.compute += left;  // rounding of the sums
  } else if (left.value < 0) {
    b.pp_comm += left;  // transfers saved elsewhere: they are no longer than what is left
  } else {
    const Seconds imbalance = min(left, waiting.imbalance);
    b.imbalance += imbalance;
    b.bubble = left - imbalance;
  }
  return b;
}

void set_throughput(const ClusterSpec& cluster, const TrainingSpec& training, Estimate& e) {
  const double tokens =
      static_cast<double>(training.global_batch) * static_cast<double>(training.tokens());
  const auto devices = static_cast<double>(cluster.devices);
  e.tokens_per_s = tokens / e.iteration.value;
  const auto rate = [&](Flops work) { return work.value / e.iteration.value / devices; };
  e.model_rate_per_device = FlopsPerSecond(rate(e.model_flops));
  e.causal_rate_per_device = FlopsPerSecond(rate(e.causal_model_flops));
  const double peak = peak_of(cluster, training.precision).value / devices;
  e.mfu = e.model_rate_per_device.value / peak;
  e.causal_mfu = e.causal_rate_per_device.value / peak;
  e.hfu = rate(e.hardware_flops) / peak;
}

}  // namespace costmodel
