// What ran when: emitted by the simulator and by every execution engine, so that predicted and
// measured are compared, drawn and traced by the same functions.
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
  std::vector<Event> events;  // by rank, then by start
  Seconds end() const;
};

// One line an event: "rank 0 | 0.000000 0.012000 | compute | 0F0" with seconds to the microsecond.
// Golden tests pin it.
std::string to_text(const Timeline& timeline);

// The compute stream as letters, one row a rank, `columns` wide: f forward, B backward
// (or input gradient), w weight gradient, d gradient reduction, o optimizer, '.' where idle.
std::string to_chart(const Timeline& timeline, int columns);

// Chrome trace JSON (Perfetto opens it): a process a rank, a thread a stream, complete events in
// microseconds.
std::string to_chrome_trace(const Timeline& timeline);

}  // namespace costmodel
