// Breaks a simulated iteration down into its parts.
#pragma once

#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/estimate/iteration_end.hpp"

namespace costmodel {

// Bytes that each device of a pipeline rank sends per iteration. With heterogeneous stages `plan`
// is the rank's own.
Traffic rank_traffic(const PlanCost& cost, const ParallelPlan& plan, const TrainingSpec& training,
                     const ModelSpec& model, std::size_t rank);

// The breakdown of the critical rank. `transfers` is the delay of its end due to pipeline
// transfers.
Breakdown breakdown_of(const PlanCost& cost, const ParallelPlan& plan, const Ending& end,
                       Seconds transfers, const StackSpec& stack);

// Sets throughput and utilization from the estimate's iteration time and FLOPs.
void set_throughput(const ClusterSpec& cluster, const TrainingSpec& training, Estimate& estimate);

}  // namespace costmodel
