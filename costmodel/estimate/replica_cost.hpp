// Data parallelism across the groups of a mixed cluster: every group holds whole replicas of the
// model, cut as suits its own devices, and takes as many micro-batches as its speed earns. Groups
// meet once an iteration, where gradients are summed over all of them.
//
// An iteration is, with one entry for each group g of n_g devices,
//     max_g (pipeline and own gradient reduction) + across + max_g optimizer + max_g gather + host,
// longer by the cluster's stragglers. `across` is a ring of the G groups over the tier that joins
// them, after each group has summed its own gradients and scattered them over its devices:
//     2 (G - 1) steps of P · (gradient bytes) / (G · n_g) a device, at the slowest group's pace
// (the two-level all-reduce of Jia et al. 2018, arXiv:1807.11205, section 3.3). Nothing hides it.
#pragma once

#include <cstdint>
#include <vector>

#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/estimate/iteration_end.hpp"

namespace costmodel {

// What one group does in an iteration.
struct ReplicaShare {
  ParallelPlan plan;               // of all the group's devices, by themselves
  std::int64_t micro_batches = 1;  // that each of its plan.dp replicas takes

  std::int64_t sequences() const { return plan.dp * plan.micro_batch * micro_batches; }
  bool operator==(const ReplicaShare&) const = default;
};

// Of one group by itself.
struct ReplicaEnd {
  Seconds meeting;  // its own gradients are summed
  Seconds optimizer, gather;
};

class ReplicaEvaluator {
 public:
  // The cluster has groups.
  ReplicaEvaluator(const ModelSpec& model, const ClusterSpec& cluster,
                   const TrainingSpec& training);

  std::size_t groups() const { return parts_.size(); }
  // Whether a group may run that: by the rules of plans, on its own devices. Asked before what
  // follows.
  bool is_valid(std::size_t group, const ReplicaShare& share) const;
  // Memory, volumes and bound of it; good until the next call for the group.
  const PlanCost& cost(std::size_t group, const ReplicaShare& share);
  Bytes capacity(std::size_t group) const;
  ReplicaEnd end(std::size_t group, const ReplicaShare& share);
  // Of the group by itself, as if there were no other.
  Estimate estimate(std::size_t group, const ReplicaShare& share);
  Timeline timeline(std::size_t group, const ReplicaShare& share);
  Seconds across() const { return across_; }
  // From what end() says of every group.
  Seconds iteration(const std::vector<ReplicaEnd>& ends) const;
  // One share for each group; they make up the global batch.
  Seconds iteration(const std::vector<ReplicaShare>& shares);

 private:
  Evaluator& on(std::size_t group, const ReplicaShare& share);

  ClusterSpec cluster_;
  TrainingSpec training_;
  std::vector<Evaluator> parts_;
  Seconds across_;
};

}  // namespace costmodel
