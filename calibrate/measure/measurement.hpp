// One measurement: repeats a run until the median is accurate enough or time is up.
#pragma once

#include <functional>
#include <vector>

#include "calibrate/measure/pace.hpp"
#include "costmodel/base/units.hpp"

namespace calibrate {

using Clock = std::function<costmodel::Seconds()>;
Clock wall_clock();
// CPU time of the calling thread: other load on the machine affects its caches but not its clock.
Clock thread_clock();

struct StopRule {
  double relative_error = 0.02;   // target: standard error of the median over the median
  int warm_up = 1;                // uncounted runs
  int least = 5, most = 1000;     // counted runs
  costmodel::Seconds longest{2};  // seconds; starts no run after it, but two always run
};

struct Timing {
  costmodel::Seconds least, median;
  int repeats = 0;
  double relative_error = 0;  // the median's standard error over the median
};

// Summarises times in seconds. The standard error of the median assumes a normal distribution with
// the width of the median absolute deviation: 1.2533 · 1.4826 · MAD / sqrt(n). All zero without
// times.
Timing summarised(std::vector<double> times);

// The same at the reference pace: instead of the median, the sum of the times over the sum of the
// slowdowns, without outliers that an interruption made several times as long as most. Both vectors
// have one size.
Timing at_reference(const std::vector<double>& times, const std::vector<double>& slowdowns);

// At the reference pace if `pace` is given.
Timing measure(const std::function<void()>& run, const StopRule& rule, const Clock& clock,
               const Pace& pace = {});

// The same for runs that record their own times: stops when relative_error(), called after every
// run, meets the rule. Returns the number of runs.
int repeat(const std::function<void()>& run, const StopRule& rule, const Clock& clock,
           const std::function<double()>& relative_error);

}  // namespace calibrate
