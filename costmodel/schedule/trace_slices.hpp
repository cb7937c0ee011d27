// The events of a timeline as slices of threads: in whole nanoseconds, and with no two of a thread
// at the same time. Viewers of traces take slices of a thread for nested, and drop those that
// overlap.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "costmodel/schedule/action.hpp"
#include "costmodel/schedule/timeline.hpp"

namespace costmodel {

using Nanoseconds = std::int64_t;

// To the nearest; a time that is not finite, or beyond an int, is as large as can be, or 0.
Nanoseconds nanoseconds(Seconds time);
// "1234.567", a trace's unit.
std::string as_microseconds(Nanoseconds time);

struct Slice {
  const Event* event = nullptr;
  std::optional<Action> action;  // of an event that is one
  std::vector<Action> beside;    // those that run together with it, in one cell
  Nanoseconds start = 0, end = 0;
  int lane = 0;  // 0, but for events of a stream that overlap
  // By rank.
  int thread() const { return static_cast<int>(event->stream) + stream_count * lane; }
  std::vector<Action> actions() const;  // with those beside it; empty: the event is none
  bool computes() const { return event->stream == Stream::compute && action.has_value(); }
};

// Of the ranks below `ranks`, by rank, stream and start. Valid as long as the timeline.
std::vector<Slice> slices_of(const Timeline& timeline, int ranks);

}  // namespace costmodel
