// V-Half (Qi et al. 2024, arXiv:2405.15362): half of 1F1B's activations for half of its bubble. A
// rank holds two chunks, placed on a V: r and 2p - 1 - r.
//
// Its building block: forwards go down the V a rank every 2 units and back up one every unit, its
// backwards down again every 2 and up every unit (table 1 there: the offsets of V-Half). So a
// rank's two lifespans, 6 (p - 1) units and the turns together, are the same on every rank, and it
// holds p + 1 chunks; the pending weight gradients are one more.
#pragma once

#include "costmodel/schedule/orders.hpp"

namespace costmodel {

ActionsByRank v_half_order(const OrderRequest& request);

// The chunks that a rank forwards before its first backward.
double v_half_forwards_first(int rank, const EvenPipeline& even);

// In micro-batches, over both chunks: p + 2 chunks, of which a rank's forwards hold p + 1.
double v_half_limit(int ranks);

// Units of the bubble where forward, input gradient and weight gradient take one each; 1F1B's has
// 6 (p - 1). Counted on the generated schedules of at least p micro-batches.
double v_half_units(int ranks);

}  // namespace costmodel
