#include "planner/logs/log_series.hpp"

#include <algorithm>
#include <cmath>

namespace planner {

using costmodel::Seconds;

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const std::size_t half = values.size() / 2;
  std::ranges::sort(values);
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

namespace {

using Series = std::vector<LoggedIteration>;

// The distance of one slow iteration from the next, if it is always the same.
std::int64_t period_of(const Series& slow) {
  if (slow.size() < 3) return 0;
  const std::int64_t first = slow[1].number - slow[0].number;
  for (std::size_t i = 2; i < slow.size(); ++i)
    if (slow[i].number - slow[i - 1].number != first) return 0;
  return first;
}

std::vector<double> times_of(const Series& part) {
  std::vector<double> times;
  for (const LoggedIteration& it : part) times.push_back(it.time.value);
  return times;
}

double middle_of(const Series& steady, std::size_t from, std::size_t to) {
  return median(times_of({steady.begin() + static_cast<std::ptrdiff_t>(from),
                          steady.begin() + static_cast<std::ptrdiff_t>(to)}));
}

// Share of pairs in which the later iteration takes longer, less those in which it takes less
// (Kendall's rank correlation with time).
double rising(const std::vector<double>& times) {
  const std::size_t every = 1 + times.size() / 400;  // a long log is sampled
  double sum = 0, pairs = 0;
  for (std::size_t i = 0; i < times.size(); i += every) {
    for (std::size_t j = i + every; j < times.size(); j += every) {
      sum += times[j] > times[i] ? 1 : times[j] < times[i] ? -1 : 0;
      ++pairs;
    }
  }
  return pairs > 0 ? sum / pairs : 0;
}

// What is left of the absolute deviations when the lines before and after `at` have a level each.
double left_by_step(const Series& steady, std::size_t at) {
  const double before = middle_of(steady, 0, at), after = middle_of(steady, at, steady.size());
  double left = 0;
  for (std::size_t i = 0; i < steady.size(); ++i)
    left += std::abs(steady[i].time.value - (i < at ? before : after));
  return left;
}

double left_by_line(const Series& steady, double first, double slope) {
  std::vector<double> rest;
  const auto at = [&](const LoggedIteration& it) {
    return first + slope * static_cast<double>(it.number - steady.front().number);
  };
  for (const LoggedIteration& it : steady) rest.push_back(it.time.value - at(it));
  const double shift = median(rest);
  double left = 0;
  for (const double one : rest) left += std::abs(one - shift);
  return left;
}

std::size_t best_step(const Series& steady) {
  constexpr std::size_t least = 3, most_tried = 64;
  std::size_t best = 0;
  double left = 0;
  const std::size_t every = 1 + steady.size() / most_tried;
  for (std::size_t at = least; at + least <= steady.size(); at += every) {
    const double one = left_by_step(steady, at);
    if (best != 0 && one >= left) continue;
    best = at;
    left = one;
  }
  return best;
}

// At most some thousand iterations of a long log, in even distances.
Series sampled(const Series& all) {
  constexpr std::size_t most = 2000;
  const std::size_t every = 1 + all.size() / most;
  Series kept;
  for (std::size_t i = 0; i < all.size(); i += every) kept.push_back(all[i]);
  return kept;
}

// Marks a series that grows, or that is slower from an iteration on; false for neither.
bool drifts(const Series& all, Pace& pace) {
  const Series steady = sampled(all);
  constexpr std::size_t enough = 4;
  constexpr double clearly = 0.3, by = 0.1;  // rank correlation; growth over the lines
  if (steady.size() < enough || rising(times_of(steady)) < clearly) return false;
  const std::size_t quarter = std::max<std::size_t>(1, steady.size() / 4);
  const double early = middle_of(steady, 0, quarter);
  const double late = middle_of(steady, steady.size() - quarter, steady.size());
  if (late < early * (1 + by)) return false;
  const double span = static_cast<double>(steady.back().number - steady.front().number) *
                      static_cast<double>(steady.size() - quarter) /
                      static_cast<double>(steady.size());
  pace.growth = span > 0 ? (late - early) / span : 0;
  const std::size_t step = best_step(steady);
  const bool stepped =
      step != 0 && left_by_step(steady, step) < 0.7 * left_by_line(steady, early, pace.growth);
  pace.shape = stepped ? SeriesShape::stepped : SeriesShape::growing;
  pace.early = Seconds(stepped ? middle_of(steady, 0, step) : early);
  pace.late = Seconds(stepped ? middle_of(steady, step, steady.size()) : late);
  if (stepped) pace.since = steady[step].number;
  return true;
}

void mark_shape(const Series& steady, Pace& pace) {
  constexpr double noise = 0.025;
  constexpr std::int64_t short_period = 16;
  pace.early = pace.late = pace.median;
  if (drifts(steady, pace)) return;
  if (pace.period > 0) {
    pace.shape = pace.period <= short_period ? SeriesShape::short_rhythm : SeriesShape::long_rhythm;
  } else if (pace.slow.size() > 1) {
    pace.shape = SeriesShape::pauses;
  } else if (pace.spread > noise) {
    pace.shape = SeriesShape::noisy;
  }
}

}  // namespace

Pace pace_of(const Series& iterations) {
  Pace pace;
  if (iterations.empty()) return pace;
  // The first ten iterations of a job warm up; a piece from its middle has a first line that may
  // hold a checkpoint.
  constexpr int warm = 10, enough = 3;
  const auto late =
      std::ranges::count_if(iterations, [](const auto& i) { return i.number > warm; });
  const bool from_start = late >= enough && iterations.front().number <= warm;
  Series steady;
  for (const LoggedIteration& it : iterations)
    if (!from_start || it.number > warm) steady.push_back(it);
  if (!from_start && steady.size() > enough) steady.erase(steady.begin());
  pace.warm_up = static_cast<int>(iterations.size() - steady.size());
  pace.counted = static_cast<int>(steady.size());
  const std::vector<double> times = times_of(steady);
  std::vector<double> deviations;
  const double middle = median(times);
  pace.median = Seconds(middle);
  for (const double time : times) pace.mean += Seconds(time / static_cast<double>(times.size()));
  for (const double time : times) deviations.push_back(std::abs(time - middle));
  constexpr double of_normal = 1.4826;  // standard deviation over median deviation
  pace.spread = of_normal * median(std::move(deviations)) / middle;
  for (const LoggedIteration& it : steady)
    if (it.time.value > middle * (1 + std::max(0.1, 5 * pace.spread))) pace.slow.push_back(it);
  pace.period = period_of(pace.slow);
  mark_shape(steady, pace);
  return pace;
}

}  // namespace planner
