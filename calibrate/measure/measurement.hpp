// One measurement: run again and again until the median is known well enough, or time is up.
#pragma once

#include <functional>
#include <vector>

#include "calibrate/measure/pace.hpp"
#include "costmodel/base/units.hpp"

namespace calibrate {

using Clock = std::function<costmodel::Seconds()>;
Clock wall_clock();
// Counts only while the calling thread computes: what else the machine does meanwhile costs caches,
// but not turns.
Clock thread_clock();

struct StopRule {
  double relative_error = 0.02;   // of the median: the rule is met when it is no larger
  int warm_up = 1;                // runs that do not count
  int least = 5, most = 1000;     // runs that do
  costmodel::Seconds longest{2};  // after which nothing is started any more; two runs always are
};

struct Timing {
  costmodel::Seconds least, median;
  int repeats = 0;
  double relative_error = 0;  // the median's standard error over it
};

// The standard error is that of a normal distribution as wide as the median absolute deviation
// says: 1.2533 · 1.4826 · MAD / sqrt(n). Of no times: all zero.
Timing summarised(std::vector<double> times);

// The same at the reference's pace: in the place of the median all time over all slowdown, those
// left out that an interruption made several times as long as most. As many of one as of the other.
Timing at_reference(const std::vector<double>& times, const std::vector<double>& slowdowns);

// At the reference's pace, where a pace is given.
Timing measure(const std::function<void()>& run, const StopRule& rule, const Clock& clock,
               const Pace& pace = {});

// The same where a run notes times of its own: `done` is asked after every run.
int repeat(const std::function<void()>& run, const StopRule& rule, const Clock& clock,
           const std::function<double()>& relative_error);

}  // namespace calibrate
