#include "costmodel/plan/pipeline.hpp"

namespace costmodel {

namespace {

// Takes the sizes of `group`.
void cut_as(const ReplicaGroup& group, ParallelPlan& own) {
  own.tp = group.tp;
  own.pp = group.pp;
  own.dp = group.dp;
  own.micro_batch = group.micro_batch;
  own.recompute = group.recompute;
  own.zero = group.zero;
  own.sequence_parallel = own.sequence_parallel && group.tp > 1;
}

}  // namespace

std::vector<Pipeline> pipelines_of(const ParallelPlan& plan, std::int64_t global_batch) {
  if (plan.replica_groups.empty())
    return {{.plan = plan, .micro_batches = plan.micro_batches(global_batch)}};
  std::vector<Pipeline> all;
  Pipeline next;
  next.plan = plan;
  next.plan.replica_groups.clear();
  for (const ReplicaGroup& group : plan.replica_groups) {
    next.plan.sequence_parallel = plan.sequence_parallel;
    cut_as(group, next.plan);
    next.micro_batches = group.micro_batches;
    next.on = all.size();
    next.group = group.group;
    all.push_back(next);
    next.first_sequence += group.sequences();
    next.first_rank += next.plan.devices();
    next.first_stage += group.pp;
  }
  return all;
}

const ClusterSpec& cluster_of(const Pipeline& pipeline, const ClusterSpec& cluster) {
  return pipeline.on ? cluster.groups[*pipeline.on] : cluster;
}

const Pipeline& pipeline_of_rank(const std::vector<Pipeline>& all, std::int64_t rank) {
  std::size_t at = all.size() - 1;
  while (at > 0 && all[at].first_rank > rank) --at;
  return all[at];
}

const Pipeline& pipeline_of_stage(const std::vector<Pipeline>& all, int pipeline_rank) {
  std::size_t at = all.size() - 1;
  while (at > 0 && all[at].first_stage > pipeline_rank) --at;
  return all[at];
}

}  // namespace costmodel
