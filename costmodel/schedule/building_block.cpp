#include "costmodel/schedule/building_block.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace costmodel {

namespace {

constexpr int period = 6;  // units between micro-batches: F, B and W of two chunks

Actions rank_order(const BuildingBlock& block, int rank, int ranks, int micro_batches) {
  struct Timed {
    std::int64_t at;
    Action action;
  };
  const int down = rank, up = 2 * ranks - 1 - rank;
  const std::array<Action, 4> steps{Action{ActionKind::forward, down, 0},
                                    {ActionKind::forward, up, 0},
                                    {ActionKind::backward, up, 0},
                                    {ActionKind::backward, down, 0}};
  std::vector<Timed> timed;
  timed.reserve(steps.size() * static_cast<std::size_t>(micro_batches));
  for (std::size_t i = 0; i < steps.size(); ++i) {
    for (int j = 0; j < micro_batches; ++j)
      timed.push_back({std::int64_t{period} * j + block[i], {steps[i].kind, steps[i].stage, j}});
  }
  std::ranges::sort(timed, [](const Timed& a, const Timed& b) { return a.at < b.at; });
  Actions list;
  list.reserve(timed.size());
  for (const Timed& one : timed) list.push_back(one.action);
  return list;
}

}  // namespace

ActionsByRank repeated(BuildingBlock (*block)(int rank, int ranks), const OrderRequest& request) {
  ActionsByRank lists;
  for (int rank = 0; rank < request.ranks; ++rank) {
    lists.push_back(
        rank_order(block(rank, request.ranks), rank, request.ranks, request.micro_batches));
  }
  return lists;
}

double forwards_before(const BuildingBlock& block) {
  const auto before = [&](int forward) { return (block[2] - forward + period - 1) / period; };
  return before(block[0]) + before(block[1]);
}

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
