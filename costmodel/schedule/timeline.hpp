// A timeline of events. The simulator and every execution engine emit it, so the same functions
// compare and draw predicted and measured runs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "costmodel/base/units.hpp"
#include "costmodel/schedule/schedule.hpp"

namespace costmodel {

enum class Stream { compute, pipeline_transfer, data_parallel, optimizer };
inline constexpr int stream_count = 4;
std::string_view name_of(Stream stream);  // "pipeline transfer"

struct Event {
  int rank = 0;  // pipeline rank
  Stream stream = Stream::compute;
  std::string name;  // "2F0", "gradient all-reduce"
  Seconds start;
  Seconds end;
};

// What a device of a pipeline rank holds over time.
struct RankMemory {
  struct Chunk {
    Bytes kept;     // for a micro-batch, from its forward to its backward
    Bytes pending;  // after that, until its weight gradient, where these are separate actions
  };
  Bytes standing;  // whatever is in flight
  std::vector<Chunk> chunks;
};

struct Timeline {
  int ranks = 0;
  std::vector<Event> events;            // sorted by rank, then by start
  std::vector<RankMemory> memory = {};  // by rank; empty: not known
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

// The compute stream, a row a rank: f forward, B backward (or input gradient), w weight gradient, x
// both together, d gradient reduction, o optimizer, '.' idle. Each letter has its share of the
// `columns`, also where one stands for several actions.
std::string to_chart(const Timeline& timeline, int columns);
// The same where the columns end at `end`, before or behind the timeline's.
std::string to_chart(const Timeline& timeline, int columns, Seconds end);

}  // namespace costmodel
