// Data parallelism across the groups of a mixed cluster: every group holds complete replicas of the
// model, partitioned to suit its devices, and takes micro-batches in proportion to its speed. The
// groups synchronise once per iteration, to sum gradients.
//
// With one entry per group g of n_g devices, an iteration takes
//   max_g (pipeline and own gradient reduction) + across + max_g optimizer + max_g gather + host,
// times the cluster's straggler factor. `across` is a ring over the G groups on the join tier,
// after each group has reduce-scattered its own gradients over its devices:
//   2 (G - 1) steps of P · (gradient bytes) / (G · n_g) per device, at the slowest group's pace
// (the two-level all-reduce of Jia et al. 2018, arXiv:1807.11205, section 3.3). It is fully
// exposed.
#pragma once

#include <cstdint>
#include <vector>

#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/estimate/iteration_end.hpp"

namespace costmodel {

// The work of one group in an iteration.
struct ReplicaShare {
  ParallelPlan plan;               // the group's plan, on all of its devices
  std::int64_t micro_batches = 1;  // per replica; it has plan.dp

  std::int64_t sequences() const { return plan.dp * plan.micro_batch * micro_batches; }
  bool operator==(const ReplicaShare&) const = default;
};

// The end of an iteration of one group.
struct ReplicaEnd {
  Seconds meeting;  // time when its own gradients are reduced
  Seconds optimizer, gather;
};

class ReplicaEvaluator {
 public:
  // `cluster` must have groups.
  ReplicaEvaluator(const ModelSpec& model, const ClusterSpec& cluster,
                   const TrainingSpec& training);

  std::size_t groups() const { return parts_.size(); }
  // Whether the share is valid on the group's devices. Must hold for the functions below.
  bool is_valid(std::size_t group, const ReplicaShare& share) const;
  // Memory, volumes and bound; valid until the next call for the group.
  const PlanCost& cost(std::size_t group, const ReplicaShare& share);
  Bytes capacity(std::size_t group) const;
  ReplicaEnd end(std::size_t group, const ReplicaShare& share);
  // Estimate and timeline of the group alone.
  Estimate estimate(std::size_t group, const ReplicaShare& share);
  Timeline timeline(std::size_t group, const ReplicaShare& share);
  Seconds across() const { return across_; }
  // Iteration time, from end() of every group.
  Seconds iteration(const std::vector<ReplicaEnd>& ends) const;
  // Iteration time of one share per group; together they make up the global batch.
  Seconds iteration(const std::vector<ReplicaShare>& shares);

 private:
  Evaluator& on(std::size_t group, const ReplicaShare& share);

  ClusterSpec cluster_;
  TrainingSpec training_;
  std::vector<Evaluator> parts_;
  Seconds across_;
};

// Of a valid plan with replica groups, on a cluster with groups. `model_flops` are those of an
// iteration.
Estimate estimate_replicas(const ParallelPlan& plan, const Workload& on,
                           const ModelFlops& model_flops);
Timeline timeline_of_replicas(const ParallelPlan& plan, const Workload& on);

}  // namespace costmodel
