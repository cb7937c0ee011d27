#include "costmodel/estimate/replica_cost.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "costmodel/base/error.hpp"
#include "costmodel/cost/collective.hpp"
#include "costmodel/estimate/breakdown.hpp"
#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/estimate/layer_mix.hpp"
#include "costmodel/estimate/notes.hpp"
#include "costmodel/machine/cluster_groups.hpp"
#include "costmodel/model/parameter_count.hpp"
#include "costmodel/plan/replica_groups.hpp"

namespace costmodel {

namespace {

// Time to sum the gradients of `model` over the groups; each device sends its own shard.
Seconds sum_across(const ModelSpec& model, const ClusterSpec& cluster,
                   const TrainingSpec& training) {
  const auto groups = static_cast<double>(cluster.groups.size());
  const Bytes gradients(parameter_count(model) * gradient_bytes_per_parameter(training));
  Seconds slowest;
  for (const ClusterSpec& group : cluster.groups) {
    const Bytes step = gradients / (groups * static_cast<double>(group.devices));
    slowest = max(slowest, transfer_time(step, 1, group.devices, joined_view(cluster, group)));
  }
  return 2 * (groups - 1) * slowest;
}

}  // namespace

ReplicaEvaluator::ReplicaEvaluator(const ModelSpec& model, const ClusterSpec& cluster,
                                   const TrainingSpec& training)
    : cluster_(cluster), training_(training), across_(sum_across(model, cluster, training)) {
  SHARDPLAN_CHECK(!cluster.groups.empty());
  for (const ClusterSpec& group : cluster.groups) parts_.emplace_back(model, group, training);
}

bool ReplicaEvaluator::is_valid(std::size_t group, const ReplicaShare& share) const {
  const Evaluator& part = parts_[group];
  TrainingSpec own = training_;
  own.global_batch = share.sequences();
  return share.micro_batches >= 1 && share.plan.devices() == part.cluster().devices &&
         share.plan.stages.empty() &&
         costmodel::is_valid(share.plan, part.model(), part.cluster(), own);
}

Evaluator& ReplicaEvaluator::on(std::size_t group, const ReplicaShare& share) {
  parts_[group].train_on(share.sequences());
  return parts_[group];
}

const PlanCost& ReplicaEvaluator::cost(std::size_t group, const ReplicaShare& share) {
  return on(group, share).cost(share.plan);
}

Bytes ReplicaEvaluator::capacity(std::size_t group) const {
  return parts_[group].cluster().device.memory;
}

ReplicaEnd ReplicaEvaluator::end(std::size_t group, const ReplicaShare& share) {
  const Ending end = on(group, share).end_of(share.plan);
  return {end.meeting, end.optimizer, end.gather};
}

Estimate ReplicaEvaluator::estimate(std::size_t group, const ReplicaShare& share) {
  return on(group, share).estimate(share.plan);
}

Timeline ReplicaEvaluator::timeline(std::size_t group, const ReplicaShare& share) {
  return on(group, share).timeline(share.plan);
}

Seconds ReplicaEvaluator::iteration(const std::vector<ReplicaEnd>& ends) const {
  ReplicaEnd last;
  for (const ReplicaEnd& end : ends) {
    last.meeting = max(last.meeting, end.meeting);
    last.optimizer = max(last.optimizer, end.optimizer);
    last.gather = max(last.gather, end.gather);
  }
  return (last.meeting + across_ + last.optimizer + last.gather + training_.stack.iteration_host) *
         straggler_factor(cluster_);
}

Seconds ReplicaEvaluator::iteration(const std::vector<ReplicaShare>& shares) {
  SHARDPLAN_CHECK(shares.size() == groups());
  std::vector<ReplicaEnd> ends;
  std::int64_t sequences = 0;
  for (std::size_t g = 0; g < shares.size(); ++g) {
    ends.push_back(end(g, shares[g]));
    sequences += shares[g].sequences();
  }
  SHARDPLAN_CHECK(sequences == training_.global_batch);
  return iteration(ends);
}

namespace {

// Estimates each replica group separately, then adds the terms that the groups share.
ReplicaShare share_of(const ReplicaPart& part) { return {part.plan, part.micro_batches}; }

std::vector<ReplicaEnd> ends_of(ReplicaEvaluator& groups, const std::vector<ReplicaPart>& parts) {
  std::vector<ReplicaEnd> ends;
  for (std::size_t g = 0; g < parts.size(); ++g) ends.push_back(groups.end(g, share_of(parts[g])));
  return ends;
}

template <class Field>
Seconds longest(const std::vector<ReplicaEnd>& ends, Field field) {
  Seconds most;
  for (const ReplicaEnd& end : ends) most = max(most, end.*field);
  return most;
}

// Bytes that a device of a pipeline rank sends in the sum over the groups: a ring over all groups
// with the shard that the device holds after its group's reduce-scatter.
Bytes sent_across(const PlanCost& cost, const ParallelPlan& plan, const TrainingSpec& training,
                  std::size_t rank, std::size_t groups) {
  const double own = sharded(cost.ranks[rank].weights.all, cost.ranks[rank].weights.experts, plan);
  return collective_bytes(CollectiveKind::all_reduce,
                          Bytes(own * gradient_bytes_per_parameter(training)),
                          static_cast<int>(groups));
}

template <class T>
void append(std::vector<T>& to, const std::vector<T>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

// Appends one group's pipeline ranks to those of the groups before.
void add_stages(const Estimate& own, const ReplicaPart& part, int group, Estimate& all) {
  append(all.stage_forward, own.stage_forward);
  append(all.stage_backward, own.stage_backward);
  append(all.memory, own.memory);
  append(all.rank_traffic, own.rank_traffic);
  const std::int64_t each = std::int64_t{part.plan.tp} * part.plan.cp * part.plan.dp;
  for (int k = 0; k < part.plan.pp; ++k) {
    all.stage_capacity.push_back(own.capacity);
    all.meshes.push_back({part.plan, group, part.group, k * each, each});
  }
  if (all.capacity.value == 0 || own.peak / own.capacity > all.peak / all.capacity) {
    all.peak = own.peak;
    all.capacity = own.capacity;
    all.reported_peak = own.reported_peak;
  }
  all.micro_batches = std::max(all.micro_batches, own.micro_batches);
  all.hardware_flops += own.hardware_flops;
}

}  // namespace

Estimate estimate_replicas(const ParallelPlan& plan, const Workload& on,
                           const ModelFlops& model_flops) {
  const auto parts = replica_parts(plan, on.training.global_batch);
  ReplicaEvaluator groups(on.model, on.cluster, on.training);
  const auto ends = ends_of(groups, parts);
  Estimate e;
  e.plan = plan;
  e.model_flops = model_flops.full;
  e.causal_model_flops = model_flops.causal;
  std::size_t critical = 0;
  for (std::size_t g = 0; g < parts.size(); ++g) {
    Estimate own = groups.estimate(g, share_of(parts[g]));
    const PlanCost& cost = groups.cost(g, share_of(parts[g]));
    for (std::size_t r = 0; r < own.rank_traffic.size(); ++r) {
      own.rank_traffic[r].add(CollectiveKind::all_reduce,
                              sent_across(cost, parts[g].plan, on.training, r, parts.size()));
    }
    add_stages(own, parts[g], static_cast<int>(g), e);
    if (g > 0 && ends[g].meeting <= ends[critical].meeting) continue;
    critical = g;
    e.critical_rank = parts[g].first_stage + own.critical_rank;
    e.breakdown = own.breakdown;
    e.pipeline = own.pipeline;
    e.bubble_fraction = own.bubble_fraction;
  }
  e.iteration = groups.iteration(ends);
  e.interval = {e.iteration * on.training.error_band.low,
                e.iteration * on.training.error_band.high};
  Breakdown& b = e.breakdown;
  b.dp_comm += groups.across() + (longest(ends, &ReplicaEnd::gather) - ends[critical].gather);
  b.optimizer = longest(ends, &ReplicaEnd::optimizer);
  b.other += e.iteration - b.total();  // waiting for the slowest node, of all the groups' nodes
  for (const Traffic& sent : e.rank_traffic)
    if (sent.total() > e.traffic.total()) e.traffic = sent;
  e.parameters = parameter_count(on.model);
  e.active_parameters = active_parameter_count(on.model);
  set_throughput(on.cluster, on.training, e);
  e.notes = notes_of(on, {});
  return e;
}

// Each group's pipeline and reduction as if alone; the rest after all have synchronised.
Timeline timeline_of_replicas(const ParallelPlan& plan, const Workload& on) {
  const auto parts = replica_parts(plan, on.training.global_batch);
  ReplicaEvaluator groups(on.model, on.cluster, on.training);
  const auto ends = ends_of(groups, parts);
  const Seconds meeting = longest(ends, &ReplicaEnd::meeting);
  const Seconds summed = meeting + groups.across();
  const Seconds stepped = summed + longest(ends, &ReplicaEnd::optimizer);
  Timeline all{plan.pp, {}};
  for (std::size_t g = 0; g < parts.size(); ++g) {
    for (int k = 0; k < parts[g].plan.pp; ++k) {
      all.events.push_back({parts[g].first_stage + k, Stream::data_parallel,
                            "gradient sum over groups", meeting, summed});
    }
    for (Event event : groups.timeline(g, share_of(parts[g])).events) {
      event.rank += parts[g].first_stage;
      if (event.start >= ends[g].meeting && event.end > event.start) {
        const bool gather = event.stream == Stream::data_parallel;
        if (!gather && event.start > ends[g].meeting) continue;  // its own host and stragglers
        const Seconds length = event.end - event.start;
        event.start = gather ? stepped : summed;
        event.end = event.start + length;
      }
      all.events.push_back(std::move(event));
    }
  }
  const Seconds rest = stepped + longest(ends, &ReplicaEnd::gather);
  const Seconds iteration = groups.iteration(ends);
  std::size_t last = 0;
  while (ends[last].meeting < meeting) ++last;
  if (iteration > rest) {
    all.events.push_back(
        {parts[last].first_stage, Stream::optimizer, "host and stragglers", rest, iteration});
  }
  std::stable_sort(all.events.begin(), all.events.end(), [](const Event& a, const Event& b) {
    return a.rank != b.rank ? a.rank < b.rank : a.start < b.start;
  });
  return all;
}

}  // namespace costmodel
