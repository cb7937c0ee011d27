#include "calibrate/measurement.hpp"

#include <time.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace calibrate {

using costmodel::Seconds;

namespace {

Seconds read_clock(clockid_t which) {
  timespec now{};
  clock_gettime(which, &now);
  return Seconds(static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec));
}

double median_of(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

}  // namespace

Clock wall_clock() {
  return [] { return read_clock(CLOCK_MONOTONIC); };
}

Clock thread_clock() {
  return [] { return read_clock(CLOCK_THREAD_CPUTIME_ID); };
}

Timing summarised(std::vector<double> times) {
  Timing timing;
  if (times.empty()) return timing;
  timing.repeats = static_cast<int>(times.size());
  timing.least = Seconds(*std::min_element(times.begin(), times.end()));
  const double median = median_of(times);
  timing.median = Seconds(median);
  for (double& time : times) time = std::abs(time - median);
  const double spread = 1.2533 * 1.4826 * median_of(times);
  if (median > 0) timing.relative_error = spread / median / std::sqrt(timing.repeats);
  return timing;
}

int repeat(const std::function<void()>& run, const StopRule& rule, const Clock& clock,
           const std::function<double()>& relative_error) {
  for (int i = 0; i < rule.warm_up; ++i) run();
  const Seconds begin = clock();
  int done = 0;
  while (done < rule.most) {
    run();
    ++done;
    if (done < 2) continue;
    if (clock() - begin >= rule.longest) break;
    if (done >= rule.least && relative_error() <= rule.relative_error) break;
  }
  return done;
}

Timing measure(const std::function<void()>& run, const StopRule& rule, const Clock& clock,
               const Pace& pace) {
  std::vector<double> times;
  int warm_up = rule.warm_up;
  PaceAround around(pace);
  around.begin();
  const auto timed = [&] {
    const Seconds begin = clock();
    run();
    const Seconds time = clock() - begin;
    const double factor = around.factor();
    if (warm_up-- > 0) return;
    times.push_back(time.value * factor);
  };
  repeat(timed, rule, clock, [&] { return summarised(times).relative_error; });
  return summarised(std::move(times));
}

}  // namespace calibrate
