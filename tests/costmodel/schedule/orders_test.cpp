// The orders of forwards and backwards: each action once, and those of the papers' figures.
#include "costmodel/schedule/orders.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "costmodel/base/error.hpp"

namespace orders_test {

using namespace costmodel;

namespace {

// The forwards before a rank's first backward.
int warm_up(const Actions& list) {
  const auto first = std::find_if(list.begin(), list.end(), [](const Action& action) {
    return action.kind == ActionKind::backward;
  });
  return static_cast<int>(first - list.begin());
}

std::vector<int> warm_ups(const ActionsByRank& lists) {
  std::vector<int> counts;
  for (const Actions& list : lists) counts.push_back(warm_up(list));
  return counts;
}

PipelineTimes even(int stages, double forward, double backward) {
  PipelineTimes times;
  times.forward.assign(static_cast<std::size_t>(stages), Seconds(forward));
  times.backward.assign(static_cast<std::size_t>(stages), Seconds(backward));
  return times;
}

}  // namespace

TEST_CASE("forwards before the first backward") {
  CHECK(warm_ups(serial_order({4, 1, 8})) == std::vector{1, 1, 1, 1});
  CHECK(warm_ups(gpipe_order({4, 1, 8})) == std::vector{8, 8, 8, 8});
  CHECK(warm_ups(one_f_one_b_order({4, 1, 8})) == std::vector{4, 3, 2, 1});
  CHECK(warm_ups(handcrafted_order({4, 1, 8})) == std::vector{4, 3, 2, 1});
  CHECK(warm_ups(handcrafted_order({4, 1, 2})) == std::vector{2, 2, 2, 1});
  // Figure 4 of Narayanan et al. 2021, bottom: 2 (p - rank - 1) + (v - 1) p, and the one in turn.
  CHECK(warm_ups(interleaved_order({4, 2, 8})) == std::vector{11, 9, 7, 5});
  CHECK(warm_ups(interleaved_order({4, 2, 4})) == std::vector{8, 8, 8, 8});
  // The V holds 2p chunks on rank 0; the last rank meets its first backward at once.
  CHECK(warm_ups(v_order({4, 2, 8})).front() == 8);
}

TEST_CASE("zero-bubble-h2 forwards what ends before the first backward can start") {
  // Figure 3 of arXiv:2401.10241: 2 (p - rank) - 1 forwards when all times are equal.
  const PipelineTimes equal = even(4, 1, 1);
  CHECK(warm_ups(eager_order({4, 1, 12, &equal})) == std::vector{7, 5, 3, 1});
  CHECK(warm_ups(eager_order({4, 1, 3, &equal})) == std::vector{3, 3, 3, 1});
  CHECK_THROWS_AS(eager_order({4, 1, 12}), InternalError);
}

TEST_CASE("every stage runs forward and backward of every micro-batch once") {
  for (const int p : {1, 2, 3, 5}) {
    for (const int m : {p, 2 * p, 5 * p}) {
      using Order = ActionsByRank (*)(const OrderRequest&);
      for (const auto& [order, v] : {std::pair<Order, int>{v_order, 2},
                                     {interleaved_order, 3},
                                     {one_f_one_b_order, 1},
                                     {handcrafted_order, 1}}) {
        for (Actions list : order({p, v, m})) {
          CHECK(list.size() == static_cast<std::size_t>(2 * v * m));
          const auto less = [](const Action& a, const Action& b) {
            return std::tuple(a.kind, a.stage, a.micro_batch) <
                   std::tuple(b.kind, b.stage, b.micro_batch);
          };
          std::sort(list.begin(), list.end(), less);
          CHECK(std::adjacent_find(list.begin(), list.end()) == list.end());
        }
      }
    }
  }
}

}  // namespace orders_test
