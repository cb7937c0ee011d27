// A whole model on one rank, executed by the runtime's own stage executor and timed operator by
// operator: in a real layer an operator finds its input where the one before it left it, its
// weights where nobody has been for a while, and its result's memory wherever the arena has some.
#pragma once

#include <vector>

#include "calibrate/measure/op_recorder.hpp"
#include "calibrate/measure/probe_model.hpp"
#include "costmodel/estimate/evaluator.hpp"

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

// A micro-batch's passes as the sum of their operators' medians, which hold what lies between them
// too. A yardstick after each operator knows the pace of each; of a whole pass it would not.
struct PassTimes {
  costmodel::Seconds forward, backward;
};
PassTimes by_ops(const StageTimes& times);

// Forward and backward of a micro-batch while `ranks` threads do the same, the mean by the wall's
// clock; and how many times as slowly as at the reference's pace their cores did it.
struct Together {
  costmodel::Seconds passes;
  double pace = 0;
};
Together time_together(const SmallModel& model, int ranks, const StopRule& rule);

}  // namespace calibrate
