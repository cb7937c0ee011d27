// Breaks a simulated iteration down into its parts.
#pragma once

#include "costmodel/estimate/estimate.hpp"
#include "costmodel/estimate/iteration_end.hpp"
#include "costmodel/estimate/plan_cost.hpp"

namespace costmodel {

// Bytes that each device of a pipeline rank sends per iteration. With heterogeneous stages `plan`
// is the rank's own.
Traffic rank_traffic(const PlanCost& cost, const ParallelPlan& plan, const Workload& on,
                     std::size_t rank);

// What of the critical rank's waiting has a cause of its own: pipeline transfers, and that the
// slowest rank's micro-batches take longer than its own.
struct Waiting {
  Seconds transfers, imbalance;
};

// What a rank spends on the micro-batches of an iteration: its computation, exposed communication
// of layers and ZeRO's, and the host's time for each.
Breakdown micro_batch_parts(const PlanCost& cost, const ParallelPlan& plan, std::size_t rank,
                            const StackHost& host);

// The breakdown of the critical rank, without the time factor of the cluster's own runs. What is
// left of its waiting is the bubble.
Breakdown breakdown_of(const PlanCost& cost, const ParallelPlan& plan, const Ending& end,
                       const Waiting& waiting, const StackHost& host);

// Sets throughput and utilization from the estimate's iteration time and FLOPs.
void set_throughput(const ClusterSpec& cluster, const TrainingSpec& training, Estimate& estimate);

}  // namespace costmodel
