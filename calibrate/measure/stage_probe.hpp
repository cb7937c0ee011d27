// Times a complete model on one rank with the runtime's stage executor, operator by operator: so an
// operator finds its input where the previous one left it, its weights not recently used, and its
// result's memory wherever the arena has some.
#pragma once

#include <vector>

#include "calibrate/measure/op_recorder.hpp"
#include "calibrate/measure/probe_model.hpp"
#include "costmodel/estimate/estimate.hpp"

namespace calibrate {

struct StageTimes {
  Timing forward, backward;  // of a micro-batch through all layers
  Timing optimizer;          // one step
  std::vector<OpRecorder::Entry> ops;
};

// Runs the evaluator's model with a plan of one device, or as the first of its tensor ranks, with
// no others; timed on the thread's CPU clock. Throws ConfigError when the runtime does not support
// the model.
StageTimes time_stage(const costmodel::Evaluator& evaluator, const costmodel::ParallelPlan& plan,
                      const StopRule& rule);

// The passes of a micro-batch as sums of the operators' medians, which include the time between
// them. The pace is measured after each operator, so it is known better than that of a complete
// pass.
struct PassTimes {
  costmodel::Seconds forward, backward;
};
PassTimes by_ops(const StageTimes& times);

// The mean wall time of a micro-batch's forward and backward while `ranks` threads do the same, and
// the slowdown of their cores against the reference pace.
struct Together {
  costmodel::Seconds passes;
  double pace = 0;
};
Together time_together(const SmallModel& model, int ranks, const StopRule& rule);

}  // namespace calibrate
