// How likely what a log shows is under a hypothesis.
//
// The time of an iteration, peak memory, the parts that its framework times, and the ranks with the
// least and the most of a part are held against what the cost model predicts of the job with the
// fault:
//
// - iteration: log(measured / predicted) is normal, with the 5th and 95th percentile of the
//   scenario's own interval (costmodel::ErrorBand), each side its own width;
// - a part: what the whole is off by, a part is off by too; beyond that a Student t of 3 degrees of
//   freedom, with the spread between two plans of one scenario (ErrorBand::pair_spread), and at
//   least a hundredth of the iteration;
// - most over least: a Student t likewise, with a scale of 0.05: ranks of one job differ less;
// - memory: log(measured / predicted), a Student t likewise with a scale of 0.08 for what is
//   allocated, twice what has the mean deviation of 4.3 % that docs/accuracy.md states for peak
//   memory, as runs outside the evidence are farther off; of 0.2 for what is reserved, in which
//   blocks are cached that nobody predicts.
//
// A fault makes no computation faster: where timers show less of it than the interval allows, the
// prediction is too slow for every hypothesis that does not compute less, and each is held against
// the log as if its computation took what was measured.
//
// The series of iterations and the lines that name a fault weigh by the odds of the hypothesis
// (job_hypotheses.hpp). "None of these" expects the same with much wider distributions, towards
// slower above all, and any series.
#pragma once

#include "costmodel/base/units.hpp"
#include "costmodel/plan/error_band.hpp"
#include "planner/diagnosis/job_hypotheses.hpp"
#include "planner/diagnosis/job_prediction.hpp"
#include "planner/logs/training_log.hpp"

namespace planner {

// What is known of the job without its log.
struct Known {
  const costmodel::ErrorBand& band;
  costmodel::Bytes capacity, predicted_peak;  // of a device
  const PredictedJob& configured;
};

// Logarithms of likelihoods, of which only differences count.
double log_time_and_memory(const TrainingLog& log, const PredictedJob& expected,
                           const Known& known);
double log_series_and_lines(const TrainingLog& log, const Hypothesis& hypothesis,
                            const PredictedJob& expected, const Known& known);
double log_of_none(const TrainingLog& log, const PredictedJob& expected, const Known& known);

}  // namespace planner
