// Schedules that repeat a building block (Qi et al. 2024, arXiv:2405.15362): every micro-batch does
// the same as the one before, six units later, where forward, input gradient and weight gradient of
// a chunk take one each. A rank holds two chunks, placed on a V: r and 2p - 1 - r. How long a block
// keeps a chunk's activations, over the six units, is how many of them the rank holds. Warm-up and
// drain are the same order, run as early as its inputs allow.
#pragma once

#include <array>

#include "costmodel/schedule/orders.hpp"

namespace costmodel {

// When the first micro-batch runs on a rank, in units: the forwards of both chunks, then the
// backward of the second chunk and of the first.
using BuildingBlock = std::array<int, 4>;

// The order of all ranks, of which `block` gives each its building block.
ActionsByRank repeated(BuildingBlock (*block)(int rank, int ranks), const OrderRequest& request);

// The chunks that a rank forwards before its first backward.
double forwards_before(const BuildingBlock& block);

// V-Half (Qi et al. 2024, arXiv:2405.15362): half of 1F1B's activations for half of its bubble. A
// rank holds two chunks, placed on a V: r and 2p - 1 - r.
//
// Its building block: forwards go down the V a rank every 2 units and back up one every unit, its
// backwards down again every 2 and up every unit (table 1 there: the offsets of V-Half). So a
// rank's two lifespans, 6 (p - 1) units and the turns together, are the same on every rank, and it
// holds p + 1 chunks; the pending weight gradients are one more.
ActionsByRank v_half_order(const OrderRequest& request);

// The chunks that a rank forwards before its first backward.
double v_half_forwards_first(int rank, const EvenPipeline& even);

// In micro-batches, over both chunks: p + 2 chunks, of which a rank's forwards hold p + 1.
double v_half_limit(int ranks);

// Units of the bubble where forward, input gradient and weight gradient take one each; 1F1B's has
// 6 (p - 1). Counted on the generated schedules of at least p micro-batches.
double v_half_units(int ranks);

// V-Min (Qi et al. 2024, arXiv:2405.15362): a third of 1F1B's activations for two thirds of its
// bubble, the least that a V of two chunks can hold. Forwards and backwards go down the V and up
// again a rank every unit (table 1 there: the offsets of V-Min), two units later at the turn where
// three divides p, so that no two steps of a rank meet.
ActionsByRank v_min_order(const OrderRequest& request);

// The chunks that a rank forwards before its first backward.
double v_min_forwards_first(int rank, const EvenPipeline& even);

// In micro-batches, over both chunks.
double v_min_limit(int ranks);

// Units of the bubble where forward, input gradient and weight gradient take one each; 1F1B's has
// 6 (p - 1). Counted on the generated schedules of at least p micro-batches.
double v_min_units(int ranks);

}  // namespace costmodel
