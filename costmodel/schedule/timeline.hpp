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

// One line per event: "rank 0 | 0.000000 0.012000 | compute | 0F0", in seconds with microsecond
// resolution. Golden tests check it.
std::string to_text(const Timeline& timeline);

// The compute stream as letters, one row per rank, `columns` wide: f forward, B backward (or input
// gradient), w weight gradient, d gradient reduction, o optimizer, '.' idle.
std::string to_chart(const Timeline& timeline, int columns);

// Chrome trace JSON (for Perfetto): one process per rank, one thread per stream, complete events in
// microseconds.
std::string to_chrome_trace(const Timeline& timeline);

}  // namespace costmodel
