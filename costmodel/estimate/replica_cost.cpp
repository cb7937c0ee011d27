#include "costmodel/estimate/replica_cost.hpp"

#include "costmodel/base/error.hpp"
#include "costmodel/estimate/pipelines_together.hpp"

namespace costmodel {

ReplicaEvaluator::ReplicaEvaluator(const ModelSpec& model, const ClusterSpec& cluster,
                                   const TrainingSpec& training)
    : training_(training),
      terms_{training.stack.host.iteration, straggler_factor(cluster), false,
             cluster.measured.time_factor},
      across_(sum_across(model, cluster, training)) {
  for (const ClusterSpec& group : groups_of(cluster)) parts_.emplace_back(model, group, training);
}

bool ReplicaEvaluator::is_valid(std::size_t group, const ReplicaShare& share) const {
  const Evaluator& part = parts_[group];
  TrainingSpec own = training_;
  own.global_batch = share.sequences();
  return share.micro_batches >= 1 && share.plan.devices() == part.cluster().devices &&
         share.plan.even() && costmodel::is_valid(share.plan, part.model(), part.cluster(), own);
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

Seconds ReplicaEvaluator::iteration(const std::vector<ReplicaEnd>& ends) const {
  ReplicaEnd last;
  for (const ReplicaEnd& end : ends) {
    last.meeting = max(last.meeting, end.meeting);
    last.optimizer = max(last.optimizer, end.optimizer);
    last.gather = max(last.gather, end.gather);
  }
  Ending all;
  all.meeting = last.meeting + across_;
  all.optimizer = last.optimizer;
  all.gather = last.gather;
  return ended(all, terms_).iteration;
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
