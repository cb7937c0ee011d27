// Copies in memory, and messages between ranks that are threads.
#pragma once

#include <cstdint>

#include "calibrate/measurement.hpp"
#include "costmodel/op.hpp"

namespace calibrate {

// Copies `bytes` from one place to another, on the thread's own clock.
Timing time_copy(std::int64_t bytes, const StopRule& rule);
// a[i] = b[i] + s · c[i]; `bytes` of each.
Timing time_triad(std::int64_t bytes, const StopRule& rule);

// One collective of `ranks` threads; a message as costmodel/collective.hpp has it. From a common
// start to the end of the slowest rank. Takes all_reduce, all_gather, reduce_scatter and send.
Timing time_collective(costmodel::CollectiveKind kind, std::int64_t bytes, int ranks,
                       const StopRule& rule);

}  // namespace calibrate
