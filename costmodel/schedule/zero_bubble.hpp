// Zero-bubble schedules: the backward is split into input and weight gradient, and weight
// gradients, on which no other rank waits, fill the bubbles (Qi et al. 2024, arXiv:2401.10241).
//
// The order of forwards and input gradients is fixed (orders.hpp). The heuristic of section 3.1
// places the weight gradients between them; it needs the times. Into gaps that are shorter than one
// it puts them where a rank's bubbles would become the largest; as the paper does with its other
// choices, we try never and always too and keep the best, so that shorter times make no order much
// worse. With the paper's profiled times the bubble rates of its table 5 result (checked by the
// tests).
#pragma once

#include <vector>

#include "costmodel/schedule/schedule.hpp"
#include "costmodel/schedule/stage_times.hpp"

namespace costmodel {

// By virtual stage, the memory that one micro-batch holds from forward to backward, and then from
// input to weight gradient, as fractions of what all chunks of the rank hold of it after forward.
// With one chunk `forward` is 1 and `pending` is M_W / M_B of the paper's table 1.
struct HeldShares {
  std::vector<double> forward, pending;
};

// Generates a schedule of any kind. Only kinds with split backward use `times` and `shares`.
Schedule generate(ScheduleKind kind, int ranks, int chunks, int micro_batches,
                  const PipelineTimes& times, const HeldShares& shares,
                  const OrderChoices& choices = {});

// The most micro-batches that a rank may hold at once, over all its chunks, of a kind with a limit.
double held_limit(ScheduleKind kind, int ranks, const OrderChoices& choices);

}  // namespace costmodel
