// The emulated stages on the machine's own clock: a stage waits as long as the cost model says it
// computes, on a thread or process of its own, and its messages really travel. What it takes longer
// than the simulator says is what the engine, its transport and the operating system add.
//
// A message carries when it was sent and is not taken before that plus the transfer time. Clocks
// are compared between ranks, so that all of them must run on one machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/engine/emulated_stages.hpp"

namespace runtime {

struct RealTimeOptions {
  std::size_t message_bytes = sizeof(std::int64_t);  // of one transfer; at least those of the stamp
  // The ranks, which sleep most of the time, take their turn before all ordinary work, where the
  // system lets them (root, or a limit on RLIMIT_RTPRIO above 0); else as if this were not set.
  bool urgent = false;
  costmodel::Seconds patience{60};  // emulate_threads: for one message
};

// One rank of a lowered schedule; every rank of the transport calls it, and all begin together.
// Event times count from that beginning. Throws what the transport throws.
std::vector<costmodel::Event> emulate_rank(Transport& transport, const costmodel::Schedule& lowered,
                                           const costmodel::PipelineTimes& times,
                                           const RealTimeOptions& options);

// All ranks as threads of this process.
costmodel::Timeline emulate_threads(const costmodel::Schedule& lowered,
                                    const costmodel::PipelineTimes& times,
                                    const RealTimeOptions& options);

// What a run came to: its last end, and the share of all ranks' time in which they did not compute.
struct Measured {
  costmodel::Seconds makespan;
  double bubble = 0;
};
Measured measured(const costmodel::Timeline& timeline);
// Of the events each rank brings; every rank calls it and has the answer.
Measured measured(Transport& transport, std::span<const costmodel::Event> events);

// What a stage takes longer than it should, from 1F1B runs of short even stages: waking up, and
// handing over. The least of five runs, since other work on the machine is no overhead. Every rank
// calls it and has the answer.
costmodel::Seconds task_overhead(Transport& transport, const RealTimeOptions& options);
// On threads.
costmodel::Seconds measure_task_overhead(int ranks, const RealTimeOptions& options);

// The times that a run is predicted with: each action longer by `overhead`.
costmodel::PipelineTimes with_overhead(costmodel::PipelineTimes times, costmodel::Seconds overhead);

}  // namespace runtime
