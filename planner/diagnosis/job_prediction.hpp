// What the cost model predicts of a job, in the parts that logs know.
#pragma once

#include <array>
#include <optional>

#include "costmodel/estimate/estimate.hpp"
#include "costmodel/estimate/plan_cost.hpp"
#include "costmodel/model/model_spec.hpp"
#include "planner/diagnosis/job_settings.hpp"
#include "planner/logs/training_log.hpp"

namespace planner {

// Of the ranks with the least and the most work.
struct PredictedPart {
  costmodel::Seconds least, most;
};

struct PredictedJob {
  costmodel::Seconds iteration;
  std::array<PredictedPart, job_part_names.size()> parts{};
  bool has_parts = false;                // not with stages or replicas of unlike sizes
  costmodel::Bytes allocated, reserved;  // as an allocator counts, of the fullest device
  double slow_iterations = 0;
  bool grows = false;  // the time above is that of the first iterations
};

// What a log states that decides what is predicted of it.
struct LogContent {
  bool data_in_forward = false;  // its forward timer holds the wait for the batch (Megatron-LM)
  bool reserved = false;  // its memory is what the allocator reserves, which takes long to follow

  std::size_t index() const { return (data_in_forward ? 1U : 0U) + (reserved ? 2U : 0U); }
};

// nullopt when the job breaks a rule of plans.
std::optional<PredictedJob> predict(const Job& job, const costmodel::ModelSpec& model,
                                    LogContent log);

// Between two predictions of one fault: a share of the way, by ratios where both are positive.
PredictedJob between(const PredictedJob& a, const PredictedJob& b, double share);

// Two faults at once: their times add up, and memory changes by the ratio of each.
PredictedJob both(const PredictedJob& a, const PredictedJob& b, const PredictedJob& neither);

// The same from an estimate and its evaluator.
PredictedJob predicted(const costmodel::Estimate& estimate, costmodel::Evaluator& evaluator,
                       const Job& job, LogContent log);

}  // namespace planner
