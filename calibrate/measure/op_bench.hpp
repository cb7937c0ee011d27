// Times products and attention in isolation, on the CPU device that runs use, with random data.
#pragma once

#include "calibrate/measure/measurement.hpp"
#include "costmodel/operators/op.hpp"

namespace calibrate {

// Times one pass. Weights rotate over several buffers, so that they come from memory, as in a
// model, and not from the nearest cache. Supports Linear, FlashAttention, AttentionScores and
// AttentionContext.
Timing time_op(const costmodel::Op& op, costmodel::Pass pass, const StopRule& rule);

// The time that a bias adds to one pass (forward or weight gradient) of a product with an m x n
// result: the difference to the same product without it.
Timing time_bias(std::int64_t m, std::int64_t n, costmodel::Pass pass, const StopRule& rule);

}  // namespace calibrate
