// The times of a job's iterations as a series: the steady state after the warm-up, and what is not
// steady in it.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "costmodel/base/units.hpp"

namespace planner {

struct LoggedIteration {
  std::int64_t number = 0;
  costmodel::Seconds time;  // where the log prints every n-th, the mean of those n
};

// steady: but for one line; pauses: some lines are much slower; rhythm: ... at equal distances of
// at most 16 iterations, or of more; growing: later ones are slower throughout; stepped: slower
// from one iteration on; noisy: all differ by more than 2.5 %.
enum class SeriesShape { steady, noisy, pauses, short_rhythm, long_rhythm, growing, stepped };
inline constexpr std::array<std::string_view, 7> series_shape_names{
    "steady", "noisy", "pauses", "short-rhythm", "long-rhythm", "growing", "stepped"};

// The steady state, after the warm-up.
struct Pace {
  int warm_up = 0;  // lines left out: those of the first ten iterations, or the first one
  int counted = 0;
  costmodel::Seconds median, mean;
  double spread = 0;  // of an iteration: 1.4826 times the median deviation, relative to the median
  std::vector<LoggedIteration> slow;  // more than 10 % and five spreads above the median
  std::int64_t period = 0;            // iterations from one slow one to the next; 0: no rhythm
  SeriesShape shape = SeriesShape::steady;
  // Of a growing or stepped series: the level of its first and last quarter, or before and after
  // the step; seconds that an iteration adds; the first slow iteration.
  costmodel::Seconds early, late;
  double growth = 0;
  std::int64_t since = 0;
};

// The steady state of such iterations.
Pace pace_of(const std::vector<LoggedIteration>& iterations);

// The middle value; 0 of none.
double median(std::vector<double> values);

}  // namespace planner
