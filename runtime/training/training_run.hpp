// Trains for some iterations as one rank of a plan, and measures it.
#pragma once

#include <functional>

#include "costmodel/estimate/evaluator.hpp"
#include "runtime/training/measurement.hpp"
#include "runtime/training/stage_executor.hpp"

namespace runtime {

struct TrainingOptions {
  int iterations = 3;
  int first = 0;  // the number of the first iteration, which says what samples it has
  ExecutorOptions executor;
  // After each iteration, on every rank: how fast it computed, for RankMeasurement::pace.
  std::function<double()> pace;
  // After each iteration, on the calling rank: how many were before and what it took here.
  std::function<void(int, costmodel::Seconds)> progress;
  // After each iteration, on every rank and before the next one begins: what it was alone.
  std::function<void(const RankMeasurement&)> each;
};

// The schedule of a plan the runtime executes, transfers included.
costmodel::Schedule lowered_schedule(const costmodel::ParallelPlan& plan,
                                     std::int64_t micro_batches);

// All ranks of the transport make the same call. Throws RunFault, which says which rank failed, of
// which pipeline rank, in which iteration, and at what.
RankMeasurement train(const costmodel::Evaluator& evaluator, const costmodel::ParallelPlan& plan,
                      Transport& transport, Device& device, const TrainingOptions& options);

}  // namespace runtime
