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
  std::sort(timed.begin(), timed.end(), [](const Timed& a, const Timed& b) { return a.at < b.at; });
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

}  // namespace costmodel
