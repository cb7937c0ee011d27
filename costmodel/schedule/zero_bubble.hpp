// Zero-bubble schedules: the backward is split into input and weight gradient, and weight
// gradients, on which no other rank waits, fill the bubbles (Qi et al. 2024, arXiv:2401.10241).
//
// The order of forwards and input gradients is fixed. One pass of the heuristic of section 3.1
// places the weight gradients between them; it needs the times. With the paper's profiled times the
// bubble rates of its table 5 result (checked by the tests).
#pragma once

#include <vector>

#include "costmodel/schedule/schedule.hpp"
#include "costmodel/schedule/stage_times.hpp"

namespace costmodel {

// The most micro-batches a rank may hold at once over all its chunks: p, as 1F1B's first rank
// (zero-bubble-h1: "ZB-1p", and zero-bubble-v), or 2p (zero-bubble-h2: "ZB-2p").
int held_limit(ScheduleKind kind, int ranks);

// By virtual stage, the memory that one micro-batch holds from forward to backward, and then from
// input to weight gradient, as fractions of what all chunks of the rank hold of it after forward.
// With one chunk `forward` is 1 and `pending` is M_W / M_B of the paper's table 1.
struct HeldShares {
  std::vector<double> forward, pending;
};

// The number of forwards that each rank runs before its first backward, for zero-bubble-h1 and -h2:
// p - rank, or as many as end before the first backward can start.
std::vector<int> split_warm_up(ScheduleKind kind, int ranks, int micro_batches,
                               const PipelineTimes& times);

// Generates a schedule of any kind. Only kinds with split backward use `times` and `shares`.
Schedule generate(ScheduleKind kind, int ranks, int chunks, int micro_batches,
                  const PipelineTimes& times, const HeldShares& shares);

// zero-bubble-v without its weight gradients: its memory use does not depend on times.
Schedule generate_v_order(int ranks, int micro_batches);

}  // namespace costmodel
