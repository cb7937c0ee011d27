// Copies in memory, and messages between ranks: threads, or processes under MPI.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "calibrate/measure/measurement.hpp"
#include "costmodel/operators/op.hpp"
#include "runtime/backend/transport.hpp"

namespace calibrate {

// Copies `bytes` from one place to another, on the thread's own clock.
Timing time_copy(std::int64_t bytes, const StopRule& rule);
// a[i] = b[i] + s · c[i]; `bytes` of each.
Timing time_triad(std::int64_t bytes, const StopRule& rule);

// The time of one collective of so many ranks, in the mean of its repetitions' slowest ranks; a
// message of so many bytes as costmodel/cost/collective.hpp has it. Takes all_reduce, all_gather,
// reduce_scatter and send.
using CollectiveTimer = std::function<Timing(costmodel::CollectiveKind kind, std::int64_t bytes,
                                             int ranks, const StopRule& rule)>;

// Of threads.
Timing time_collective(costmodel::CollectiveKind kind, std::int64_t bytes, int ranks,
                       const StopRule& rule);

// Whose messages are measured.
struct Ranks {
  std::string are = "threads";  // or "processes"
  int count = 1;
  CollectiveTimer time = time_collective;
};

// Of the first ranks of a world that is there already (MPI's processes): rank 0 has a timer of it
// while `lead` runs, and all others take part as it asks them to. Every rank makes the call.
void with_ranks(runtime::Transport& transport,
                const std::function<void(const CollectiveTimer&)>& lead);

}  // namespace calibrate
