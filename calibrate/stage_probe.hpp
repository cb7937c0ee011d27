// A whole model on one rank, executed by the runtime's own stage executor and timed operator by
// operator: in a real layer an operator finds its input where the one before it left it, its
// weights where nobody has been for a while, and its result's memory wherever the arena has some.
#pragma once

#include <vector>

#include "calibrate/op_recorder.hpp"
#include "calibrate/small_model.hpp"
#include "costmodel/estimate.hpp"

namespace calibrate {

struct StageTimes {
  Timing forward, backward;  // of a micro-batch, through the whole model
  Timing optimizer;          // one step
  std::vector<OpRecorder::Entry> ops;
};

// `evaluator`'s model with a plan of one device; times by the thread's own clock. Throws
// ConfigError when the runtime does not take the model.
StageTimes time_stage(const costmodel::Evaluator& evaluator, const costmodel::ParallelPlan& plan,
                      const StopRule& rule);

// Forward and backward of a micro-batch while `ranks` threads do the same, of the usual rank.
Timing time_together(const SmallModel& model, int ranks, const StopRule& rule);

}  // namespace calibrate
