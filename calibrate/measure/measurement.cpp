#include "calibrate/measure/measurement.hpp"

#include <algorithm>
#include <cmath>

#include "runtime/devices/yardstick.hpp"

namespace calibrate {

using namespace costmodel;

namespace {

double median_of(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

}  // namespace

Clock wall_clock() { return runtime::wall_time; }

Clock thread_clock() { return runtime::thread_time; }

Timing summarised(std::vector<double> times) {
  Timing timing;
  if (times.empty()) return timing;
  timing.repeats = static_cast<int>(times.size());
  timing.least = Seconds(*std::ranges::min_element(times));
  const double median = median_of(times);
  timing.median = Seconds(median);
  for (double& time : times) time = std::abs(time - median);
  const double spread = 1.2533 * 1.4826 * median_of(times);
  if (median > 0) timing.relative_error = spread / median / std::sqrt(timing.repeats);
  return timing;
}

Timing at_reference(const std::vector<double>& times, const std::vector<double>& slowdowns) {
  constexpr double interrupted = 4;
  std::vector<double> ratios(times.size());
  for (std::size_t i = 0; i < times.size(); ++i) ratios[i] = times[i] / slowdowns[i];
  if (ratios.empty()) return {};
  Timing timing;
  timing.least = Seconds(*std::ranges::min_element(ratios));
  std::vector<double> sorted = ratios;
  const double limit = interrupted * median_of(sorted);
  double time = 0, slow = 0, n = 0, squares = 0;
  for (std::size_t i = 0; i < times.size(); ++i) {
    if (ratios[i] > limit) continue;
    time += times[i];
    slow += slowdowns[i];
    n += 1;
  }
  const double ratio = time / slow;
  for (std::size_t i = 0; i < times.size(); ++i) {
    const double off = times[i] - ratio * slowdowns[i];
    if (ratios[i] <= limit) squares += off * off;
  }
  timing.median = Seconds(ratio);
  timing.repeats = static_cast<int>(n);
  // The error of a ratio of sums: the residuals' standard error over the mean time.
  if (n > 1) timing.relative_error = std::sqrt(squares / (n - 1) / n) / (time / n);
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
  std::vector<double> times, slowdowns;
  int warm_up = rule.warm_up;
  PaceAround around(pace);
  around.begin();
  const auto timed = [&] {
    const Seconds begin = clock();
    run();
    const Seconds time = clock() - begin;
    const double slowdown = around.slowdown();
    if (warm_up-- > 0) return;
    times.push_back(time.value);
    slowdowns.push_back(slowdown);
  };
  const auto timing = [&] { return pace ? at_reference(times, slowdowns) : summarised(times); };
  repeat(timed, rule, clock, [&] { return timing().relative_error; });
  return timing();
}

}  // namespace calibrate
