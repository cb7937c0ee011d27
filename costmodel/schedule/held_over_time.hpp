// What a pipeline rank holds at each moment of a timeline: micro-batches in flight, and bytes.
#pragma once

#include <span>
#include <vector>

#include "costmodel/schedule/trace_slices.hpp"

namespace costmodel {

struct HeldStep {
  Nanoseconds at = 0;
  double micro_batches = 0;  // forward begun, backward not ended; a chunk of v counts 1/v
  Bytes bytes;               // for them and for weight gradients to come, and what always stands
};

// From 0 on, a step for each moment at which something changes. `slices` are one rank's, and its
// chunks the stages that it computes, ascending; none for a rank that computes nothing.
std::vector<HeldStep> held_over_time(std::span<const Slice> slices, const RankMemory& memory);

}  // namespace costmodel
