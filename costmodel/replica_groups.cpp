#include "costmodel/replica_groups.hpp"

#include <algorithm>
#include <numeric>

#include "costmodel/cluster_groups.hpp"
#include "costmodel/collective.hpp"
#include "costmodel/error.hpp"

namespace costmodel {

namespace {

// The gradients of `model` summed over the groups, each device sending its own part.
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

}  // namespace costmodel
