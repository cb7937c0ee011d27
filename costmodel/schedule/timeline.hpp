// A timeline of events. The simulator and every execution engine emit it, so the same functions
// compare, draw and trace predicted and measured runs.
#pragma once

#include <string>
#include <vector>

#include "costmodel/base/units.hpp"
#include "costmodel/schedule/schedule.hpp"

namespace costmodel {

enum class Stream { compute, pipeline_transfer, data_parallel, optimizer };

struct Event {
  int rank = 0;  // pipeline rank
  Stream stream = Stream::compute;
  std::string name;  // "2F0", "gradient all-reduce"
  Seconds start;
  Seconds end;
};

struct Timeline {
  int ranks = 0;
  std::vector<Event> events;  // sorted by rank, then by start
  Seconds end() const;
};

// Idle over busy time of a pipeline: (T - W) / W, where W is the computation of the rank that
// computes longest, m·max(t_f + t_b), and T the time from first start to last end or, where ranks
// do not synchronise between iterations (`apart`), the longest span of a rank. (p - 1)/m for equal
// stages without communication (arXiv:2104.04473, section 2.2).
double bubble_fraction(Seconds pipeline, Seconds slowest);
double bubble_fraction(const Timeline& timeline, bool apart = false);

// One line per event: "rank 0 | 0.000000 0.012000 | compute | 0F0", in seconds with microsecond
// resolution. Golden tests check it.
std::string to_text(const Timeline& timeline);

// The compute stream as letters, one row per rank, `columns` wide: f forward, B backward (or input
// gradient), w weight gradient, d gradient reduction, o optimizer, '.' idle.
std::string to_chart(const Timeline& timeline, int columns);

// What is known of an iteration beside its events.
struct IterationFigures {
  Seconds time;  // where ranks do not synchronise it is shorter than the timeline
  double bubble_fraction = 0;
};

// Chrome trace JSON (for Perfetto): one process per rank, one thread per stream, complete events in
// microseconds; beside them iteration_s and bubble_fraction, which viewers ignore.
std::string to_chrome_trace(const Timeline& timeline, const IterationFigures& iteration);

}  // namespace costmodel
