// The emulated stages in real time: a stage sleeps for the modelled compute time on a thread or
// process of its own, and messages really travel. The excess over the simulator's time is the
// overhead of the engine, the transport and the operating system.
//
// A message carries its send time and is not delivered before that plus the transfer time. Ranks
// compare clocks, so all of them must run on one machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/engine/emulated_stages.hpp"

namespace runtime {

struct RealTimeOptions {
  std::size_t message_bytes = sizeof(std::int64_t);  // per transfer, at least the time stamp
  bool urgent = false;
  costmodel::Seconds patience{60};  // emulate_threads: timeout of one message
};

// Runs one rank of a lowered schedule. Collective: every rank calls it, and all start together.
// Event times count from that start. Throws what the transport throws.
std::vector<costmodel::Event> emulate_rank(Transport& transport, const costmodel::Schedule& lowered,
                                           const costmodel::PipelineTimes& times,
                                           const RealTimeOptions& options);

// Runs all ranks as threads of this process.
costmodel::Timeline emulate_threads(const costmodel::Schedule& lowered,
                                    const costmodel::PipelineTimes& times,
                                    const RealTimeOptions& options);

// A run's makespan in seconds, and the fraction of all ranks' time in which they did not compute.
struct Measured {
  costmodel::Seconds makespan;
  double bubble = 0;
};
Measured measured(const costmodel::Timeline& timeline);
// The same from each rank's own events. Collective; every rank gets the result.
Measured measured(Transport& transport, std::span<const costmodel::Event> events);

// The overhead per action in seconds (wake-up and hand-over), from 1F1B runs of short equal stages:
// the minimum of five runs, because other load on the machine is not overhead. Collective; every
// rank gets the result.
costmodel::Seconds task_overhead(Transport& transport, const RealTimeOptions& options);
// The same on threads of this process.
costmodel::Seconds measure_task_overhead(int ranks, const RealTimeOptions& options);

}  // namespace runtime
