#include "costmodel/schedule/v_min.hpp"

#include "costmodel/schedule/building_block.hpp"

namespace costmodel {

namespace {

BuildingBlock v_min_block(int rank, int ranks) {
  const int turn = ranks % 3 == 0 ? 2 : 0;
  return {rank, 2 * ranks - 1 - rank, 2 * ranks + turn + rank, 4 * ranks + turn - 1 - rank};
}

}  // namespace

ActionsByRank v_min_order(const OrderRequest& request) { return repeated(v_min_block, request); }

double v_min_forwards_first(int rank, const EvenPipeline& even) {
  return forwards_before(v_min_block(rank, even.ranks));
}

double v_min_limit(int ranks) { return (ranks + 4) / 3.0; }

double v_min_units(int ranks) {
  if (ranks == 1) return 0;
  return 4.0 * ranks - (ranks % 3 == 0 ? 3 : 5);
}

}  // namespace costmodel
