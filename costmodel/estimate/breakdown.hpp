// What an iteration is made of, told apart when it has been simulated.
#pragma once

#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/estimate/iteration_end.hpp"

namespace costmodel {

// Bytes the devices of one pipeline rank send in an iteration, each. `plan` is the rank's own where
// stages differ.
Traffic rank_traffic(const PlanCost& cost, const ParallelPlan& plan, const TrainingSpec& training,
                     const ModelSpec& model, std::size_t rank);

// Of the rank that decides. `transfers`: how much later they make it end.
Breakdown breakdown_of(const PlanCost& cost, const ParallelPlan& plan, const Ending& end,
                       Seconds transfers, const StackSpec& stack);

// Throughput and utilization, of its iteration and FLOPs.
void set_throughput(const ClusterSpec& cluster, const TrainingSpec& training, Estimate& estimate);

}  // namespace costmodel
