// Products and attention one at a time, through the same device that runs execute on, with random
// data.
#pragma once

#include "calibrate/measure/measurement.hpp"
#include "costmodel/operators/op.hpp"

namespace calibrate {

// Times one pass. Weights are taken from several places in turn, so that they come from where a
// model's weights come from, not from the nearest cache. Takes Linear, FlashAttention,
// AttentionScores and AttentionContext.
Timing time_op(const costmodel::Op& op, costmodel::Pass pass, const StopRule& rule);

// What a bias adds to one pass (forward or weight gradient) of a product with m x n results: the
// difference to the same product without.
Timing time_bias(std::int64_t m, std::int64_t n, costmodel::Pass pass, const StopRule& rule);

}  // namespace calibrate
