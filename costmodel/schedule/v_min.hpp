// V-Min (Qi et al. 2024, arXiv:2405.15362): a third of 1F1B's activations for two thirds of its
// bubble, the least that a V of two chunks can hold. Forwards and backwards go down the V and up
// again a rank every unit (table 1 there: the offsets of V-Min), two units later at the turn where
// three divides p, so that no two steps of a rank meet.
#pragma once

#include "costmodel/schedule/orders.hpp"

namespace costmodel {

ActionsByRank v_min_order(const OrderRequest& request);

// The chunks that a rank forwards before its first backward.
double v_min_forwards_first(int rank, const EvenPipeline& even);

// In micro-batches, over both chunks.
double v_min_limit(int ranks);

// Units of the bubble where forward, input gradient and weight gradient take one each; 1F1B's has
// 6 (p - 1). Counted on the generated schedules of at least p micro-batches.
double v_min_units(int ranks);

}  // namespace costmodel
