// Trains as one rank of a plan for some iterations and measures it.
#pragma once

#include <functional>

#include "costmodel/estimate/estimate.hpp"
#include "runtime/training/measurement.hpp"
#include "runtime/training/stage_executor.hpp"

namespace runtime {

struct TrainingOptions {
  int iterations = 3;
  int first = 0;  // number of the first iteration, which selects its samples
  ExecutorOptions executor;
  // Called after each iteration on every rank: the slowdown, for RankMeasurement::pace.
  std::function<double()> pace;
  // Called after each iteration on every rank: the number of iterations before it and its time
  // here.
  std::function<void(int, costmodel::Seconds)> progress;
  // Called after each iteration on every rank, before the next begins, with that iteration's
  // measurement.
  std::function<void(const RankMeasurement&)> each;
};

// The plan's schedule with its transfers, as the runtime executes it: of a plan whose schedule does
// not depend on times, and of any.
costmodel::Schedule lowered_schedule(const costmodel::ParallelPlan& plan,
                                     std::int64_t micro_batches);
costmodel::Schedule lowered_schedule(const costmodel::Evaluator& evaluator,
                                     const costmodel::ParallelPlan& plan,
                                     std::int64_t micro_batches);

// Collective over the transport. Throws RunFault, which names the failing rank, its pipeline rank,
// the iteration and the action.
RankMeasurement train(const costmodel::Evaluator& evaluator, const costmodel::ParallelPlan& plan,
                      Transport& transport, Device& device, const TrainingOptions& options);

}  // namespace runtime
