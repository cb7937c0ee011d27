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

}  // namespace costmodel
