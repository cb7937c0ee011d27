// Shares of the batch for the groups of a mixed cluster, each of which holds complete replicas of
// the model: prices one share after the other, for a search of all of them. The prices are those
// of the pipelines of a plan (pipelines_together).
#pragma once

#include <vector>

#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/estimate/iteration_end.hpp"
#include "costmodel/estimate/replica_share.hpp"

namespace costmodel {

class ReplicaEvaluator {
 public:
  ReplicaEvaluator(const ModelSpec& model, const ClusterSpec& cluster,
                   const TrainingSpec& training);

  std::size_t groups() const { return parts_.size(); }
  // Whether the share is valid on the group's devices. Must hold for the functions below.
  bool is_valid(std::size_t group, const ReplicaShare& share) const;
  // Memory, volumes and bound; valid until the next call for the group.
  const PlanCost& cost(std::size_t group, const ReplicaShare& share);
  Bytes capacity(std::size_t group) const;
  ReplicaEnd end(std::size_t group, const ReplicaShare& share);
  Seconds across() const { return across_; }
  // Iteration time, from end() of every group.
  Seconds iteration(const std::vector<ReplicaEnd>& ends) const;
  // Iteration time of one share per group; together they make up the global batch.
  Seconds iteration(const std::vector<ReplicaShare>& shares);

 private:
  Evaluator& on(std::size_t group, const ReplicaShare& share);

  TrainingSpec training_;
  EndTerms terms_;
  std::vector<Evaluator> parts_;
  Seconds across_;
};

}  // namespace costmodel
