// Measures copies in memory and collectives between ranks, which are threads or MPI processes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "calibrate/measure/measurement.hpp"
#include "costmodel/operators/op.hpp"
#include "runtime/backend/transport.hpp"

namespace calibrate {

// Copies `bytes`, timed on the thread's CPU clock.
Timing time_copy(std::int64_t bytes, const StopRule& rule);
// a[i] = b[i] + s · c[i]; `bytes` per vector.
Timing time_triad(std::int64_t bytes, const StopRule& rule);

// Times one collective over `ranks` ranks: the mean over repetitions of the slowest rank's time.
// `bytes` is the message as in costmodel/cost/collective.hpp. Supports all_reduce, all_gather,
// reduce_scatter and send.
using CollectiveTimer = std::function<Timing(costmodel::CollectiveKind kind, std::int64_t bytes,
                                             int ranks, const StopRule& rule)>;

// Between threads of this process.
Timing time_collective(costmodel::CollectiveKind kind, std::int64_t bytes, int ranks,
                       const StopRule& rule);

// The ranks whose messages are measured.
struct Ranks {
  std::string are = "threads";  // or "processes"
  int count = 1;
  CollectiveTimer time = time_collective;
};

// Measures on an existing world (MPI processes): rank 0 gets a timer while `lead` runs, which uses
// the first ranks; the others serve its requests. Collective.
void with_ranks(runtime::Transport& transport,
                const std::function<void(const CollectiveTimer&)>& lead);

}  // namespace calibrate
