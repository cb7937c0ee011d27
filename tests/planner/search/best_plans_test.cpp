#include "planner/search/best_plans.hpp"

#include <doctest/doctest.h>

#include "costmodel/estimate/evaluator.hpp"
#include "planner/search/grid_search.hpp"
#include "tests/costmodel/support/scenarios.hpp"

namespace best_plans_test {

using costmodel::Bytes;
using costmodel::Seconds;
using planner::Podium;
using planner::Ranked;

namespace {

Ranked plan(double time, int tp, int recomputed) {
  Ranked ranked{Seconds(time), Bytes(0), 0, {}};
  ranked.plan.tp = tp;
  if (recomputed > 0) ranked.plan.recompute = {costmodel::Recomputation::full, recomputed};
  return ranked;
}

}  // namespace

TEST_CASE("plans that recompute another number of layers share a row, the best one's") {
  Podium podium(3);
  podium.offer(plan(5, 1, 2));
  podium.offer(plan(4, 1, 1));  // takes the row over
  podium.offer(plan(6, 1, 3));  // is not let in
  podium.offer(plan(7, 1, 0));  // recomputes nothing: another plan
  podium.offer(plan(8, 2, 1));  // so is another size
  REQUIRE(podium.ranked().size() == 3);
  CHECK(podium.ranked()[0].plan.recompute.layers == 1);
  CHECK(podium.ranked()[0].time == Seconds(4));
  CHECK(podium.ranked()[1].time == Seconds(7));
  CHECK(podium.ranked()[2].plan.tp == 2);
  CHECK_FALSE(podium.open_to(Seconds(9)));
  podium.offer(plan(6, 4, 0));
  CHECK(podium.ranked()[1].plan.tp == 4);
  CHECK(podium.ranked().size() == 3);
}

TEST_CASE("a family of t, p, d, c, e has one row, which is open to what would be its best") {
  Podium podium(2, costmodel::RankingRows::families);
  podium.offer(plan(5, 1, 0));
  podium.offer(plan(6, 1, 1));  // another of the family, and slower
  podium.offer(plan(8, 2, 0));
  REQUIRE(podium.ranked().size() == 2);
  CHECK(podium.ranked()[0].time == Seconds(5));
  CHECK(podium.open_to(Seconds(7)));
  CHECK_FALSE(podium.open_to(Seconds(7), plan(7, 1, 0).plan));
  CHECK(podium.open_to(Seconds(7), plan(7, 2, 0).plan));
  CHECK(podium.open_to(Seconds(7), plan(7, 4, 0).plan));
  CHECK_FALSE(podium.open_to(Seconds(9), plan(9, 4, 0).plan));
  podium.offer(plan(4, 2, 1));
  REQUIRE(podium.ranked().size() == 2);
  CHECK(podium.ranked()[0].plan.tp == 2);
  podium.offer(plan(4.5, 4, 0));  // the last row leaves
  CHECK(podium.ranked()[1].plan.tp == 4);
  CHECK(podium.worst(plan(0, 2, 0).plan) == Seconds(4));
  CHECK(podium.worst(plan(0, 1, 0).plan) == Seconds(4.5));
}

TEST_CASE("a ranking has no row twice, pruned or not") {
  const auto s = scenarios::read(
      "model: llama-3-70b\ncluster: {base: dgx-a100, devices: 64}\n"
      "training: {global_batch: 128, sequence: 4096, stack: megatron-core-2026}\n"
      "plan: {tp: 4, vpp: 1, cp: 1}\nsearch: {top: 12, rows: plans}\n");
  costmodel::Evaluator evaluator(s.model, s.cluster, s.training);
  const auto pruned = planner::search(s, evaluator).plans;
  const auto all = planner::brute_force(s, evaluator).plans;
  REQUIRE(pruned.size() == 12);
  REQUIRE(all.size() == 12);
  int partial = 0;
  for (std::size_t i = 0; i < pruned.size(); ++i) {
    CHECK(pruned[i].plan == all[i].plan);
    partial += pruned[i].plan.recompute.layers > 0 ? 1 : 0;
    for (std::size_t j = 0; j < i; ++j)
      CHECK_FALSE(planner::one_row(pruned[i].plan, pruned[j].plan));
  }
  CHECK(partial > 0);
}

}  // namespace best_plans_test
