// Schedules whose backward is split into input and weight gradient, so that weight gradients, which
// no other rank waits for, fill the bubbles: Qi et al. 2024 (arXiv:2401.10241).
//
// Forwards and backwards stand in a fixed order; weight gradients are put between them in one pass
// by the heuristic of section 3.1 there, which wants the times. With the paper's profiled times it
// gives the bubble rates of its table 5 (the tests hold it to them).
#pragma once

#include <vector>

#include "costmodel/schedule/schedule.hpp"
#include "costmodel/schedule/stage_times.hpp"

namespace costmodel {

// What a rank may hold at once, in micro-batches of all its chunks: p as 1F1B's first rank
// (zero-bubble-h1: "ZB-1p", and zero-bubble-v), 2p (zero-bubble-h2: "ZB-2p").
int held_limit(ScheduleKind kind, int ranks);

// By virtual stage, what one micro-batch keeps from forward to backward, and then from input to
// weight gradient, as shares of what all chunks of the rank keep of it after forward. With one
// chunk forward is 1 and pending is M_W / M_B of the paper's table 1.
struct HeldShares {
  std::vector<double> forward, pending;
};

// Forwards each rank runs before its first backward, for zero-bubble-h1 and -h2: p - rank, or as
// many as end before the first backward can start.
std::vector<int> split_warm_up(ScheduleKind kind, int ranks, int micro_batches,
                               const PipelineTimes& times);

// A schedule of any kind. `times` and `shares` matter to the split ones only.
Schedule generate(ScheduleKind kind, int ranks, int chunks, int micro_batches,
                  const PipelineTimes& times, const HeldShares& shares);

// zero-bubble-v without its weight gradients: who holds how much does not depend on times.
Schedule generate_v_order(int ranks, int micro_batches);

}  // namespace costmodel
