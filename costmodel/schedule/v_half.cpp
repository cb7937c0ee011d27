#include "costmodel/schedule/v_half.hpp"

#include "costmodel/schedule/building_block.hpp"

namespace costmodel {

namespace {

BuildingBlock v_half_block(int rank, int ranks) {
  const int turn = 1;                       // at the last rank, then at the first
  const int back = ranks % 2 == 0 ? 5 : 2;  // the smallest for which no two steps of a rank meet
  const int last = ranks - 1, behind = last - rank;
  const int down = 2 * rank;
  const int up = 2 * last + turn + behind;
  const int down_again = 2 * last + turn + last + turn + 2 * rank;
  const int up_again = 2 * last + turn + last + turn + 2 * last + back + behind;
  return {down, up, down_again, up_again};
}

}  // namespace

ActionsByRank v_half_order(const OrderRequest& request) { return repeated(v_half_block, request); }

double v_half_forwards_first(int rank, const EvenPipeline& even) {
  return forwards_before(v_half_block(rank, even.ranks));
}

double v_half_limit(int ranks) { return (ranks + 2) / 2.0; }

double v_half_units(int ranks) {
  if (ranks <= 2) return ranks == 1 ? 0 : 3;
  return 3.0 * ranks - (ranks % 2 == 0 ? 4 : 5);
}

}  // namespace costmodel
