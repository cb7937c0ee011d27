// V-Min against what its paper says: a third of 1F1B's activations for two thirds of its bubble.

#include <doctest/doctest.h>

#include <algorithm>

#include "costmodel/schedule/building_block.hpp"
#include "costmodel/schedule/closed_form.hpp"
#include "costmodel/schedule/zero_bubble.hpp"

namespace v_min_test {

using namespace costmodel;

namespace {

int most_held(const Actions& list) {
  int held = 0, most = 0;
  for (const Action& action : list) {
    if (action.kind == ActionKind::forward) most = std::max(most, ++held);
    if (action.kind == ActionKind::weight_gradient) --held;
  }
  return most;
}

}  // namespace

TEST_CASE("equal times: two thirds of 1F1B's bubble, a third of its chunks in flight") {
  std::vector<double> scratch;
  for (int p = 1; p <= 16; ++p) {
    for (const int m : {p, 2 * p, 5 * p + 1, 9 * p}) {
      CAPTURE(p);
      CAPTURE(m);
      const auto n = static_cast<std::size_t>(2 * p);
      PipelineTimes times;
      times.forward = times.backward = times.weight_gradient = std::vector<Seconds>(n, Seconds(1));
      const HeldShares shares{std::vector<double>(n, 0.5), std::vector<double>(n, 0.5)};
      const Schedule s = generate(ScheduleKind::v_min, p, 2, m, times, shares);
      CHECK_FALSE(validate(s).has_value());
      const double end = simulate_makespan(compile(s), times, scratch).value;
      CHECK(end == pipeline_time(ScheduleKind::v_min, p, 2, m, Seconds(1), Seconds(1), Seconds(0),
                                 Seconds(1))
                       .value);
      CHECK(end - 6.0 * m == v_min_units(p));
      CHECK(v_min_units(p) <= 4.0 * p);  // of 6 (p - 1)
      for (const Actions& list : s.actions)
        CHECK(most_held(list) <= std::max(2.0, 2 * v_min_limit(p)) + 1e-9);
    }
  }
}

TEST_CASE("a rank forwards what its block says before its first backward") {
  for (int p = 1; p <= 8; ++p) {
    const ActionsByRank lists = v_min_order({p, 2, 6 * p});
    for (int rank = 0; rank < p; ++rank) {
      const Actions& list = lists[static_cast<std::size_t>(rank)];
      double first = 0;
      while (list[static_cast<std::size_t>(first)].kind == ActionKind::forward) ++first;
      CHECK(first == v_min_forwards_first(rank, {p, 2, 6.0 * p, {}, {}, {}, {}}));
    }
  }
}

}  // namespace v_min_test
