#include "costmodel/schedule/v_half.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace costmodel {

namespace {

constexpr int period = 6;  // units between micro-batches: F, B and W of two chunks

// When the first micro-batch runs on a rank, in units.
struct Block {
  struct Step {
    int at;
    ActionKind kind;
    int chunk;
  };
  std::array<Step, 4> steps;
};

Block block_of(int rank, int ranks) {
  const int turn = 1;                       // at the last rank, then at the first
  const int back = ranks % 2 == 0 ? 5 : 2;  // the smallest for which no two steps of a rank meet
  const int last = ranks - 1, behind = last - rank;
  const int down = 2 * rank;
  const int up = 2 * last + turn + behind;
  const int down_again = 2 * last + turn + last + turn + 2 * rank;
  const int up_again = 2 * last + turn + last + turn + 2 * last + back + behind;
  return {{{{down, ActionKind::forward, 0},
            {up, ActionKind::forward, 1},
            {down_again, ActionKind::backward, 1},
            {up_again, ActionKind::backward, 0}}}};
}

Actions rank_order(int rank, int ranks, int micro_batches) {
  struct Timed {
    std::int64_t at;
    Action action;
  };
  std::vector<Timed> timed;
  for (const Block::Step& step : block_of(rank, ranks).steps) {
    const int stage = step.chunk == 0 ? rank : 2 * ranks - 1 - rank;
    for (int j = 0; j < micro_batches; ++j)
      timed.push_back({std::int64_t{period} * j + step.at, {step.kind, stage, j}});
  }
  std::sort(timed.begin(), timed.end(), [](const Timed& a, const Timed& b) { return a.at < b.at; });
  Actions list;
  for (const Timed& one : timed) list.push_back(one.action);
  return list;
}

}  // namespace

ActionsByRank v_half_order(const OrderRequest& request) {
  ActionsByRank lists;
  for (int rank = 0; rank < request.ranks; ++rank)
    lists.push_back(rank_order(rank, request.ranks, request.micro_batches));
  return lists;
}

double v_half_forwards_first(int rank, const EvenPipeline& even) {
  const auto steps = block_of(rank, even.ranks).steps;
  const auto before = [&](const Block::Step& forward) {  // those that start before the backward
    return (steps[2].at - forward.at + period - 1) / period;
  };
  return before(steps[0]) + before(steps[1]);
}

double v_half_limit(int ranks) { return (ranks + 2) / 2.0; }

double v_half_units(int ranks) {
  if (ranks <= 2) return ranks == 1 ? 0 : 3;
  return 3.0 * ranks - (ranks % 2 == 0 ? 4 : 5);
}

}  // namespace costmodel
