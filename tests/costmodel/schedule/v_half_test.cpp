// V-Half against what its paper says: half of 1F1B's activations for half of its bubble.
#include "costmodel/schedule/building_block.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "costmodel/schedule/closed_form.hpp"
#include "costmodel/schedule/simulator.hpp"
#include "costmodel/schedule/zero_bubble.hpp"
#include "tests/costmodel/support/fixtures.hpp"

namespace v_half_test {

using namespace costmodel;

namespace {

PipelineTimes even(int p, double forward, double backward, double weight) {
  PipelineTimes times;
  times.forward.assign(static_cast<std::size_t>(2 * p), Seconds(forward));
  times.backward.assign(static_cast<std::size_t>(2 * p), Seconds(backward));
  times.weight_gradient.assign(static_cast<std::size_t>(2 * p), Seconds(weight));
  return times;
}

Schedule of(int p, int m, const PipelineTimes& times, double share = 1) {
  const auto n = static_cast<std::size_t>(2 * p);
  const HeldShares shares{std::vector<double>(n, 0.5), std::vector<double>(n, 0.5 * share)};
  return generate(ScheduleKind::v_half, p, 2, m, times, shares);
}

// The most chunks a rank holds: from forward to backward, or to the weight gradient.
int most_held(const Actions& list, bool weight_gradients) {
  int held = 0, most = 0;
  for (const Action& action : list) {
    if (action.kind == ActionKind::forward) ++held;
    if (action.kind == (weight_gradients ? ActionKind::weight_gradient : ActionKind::backward))
      --held;
    most = std::max(most, held);
  }
  return most;
}

}  // namespace

TEST_CASE("valid for any ranks and micro-batches, and for any times") {
  fixtures::Random random(5);
  for (int p = 1; p <= 9; ++p) {
    for (int m = 1; m <= 3 * p + 1; ++m) {
      CAPTURE(p);
      CAPTURE(m);
      PipelineTimes times = even(p, 1, 1, 1);
      for (auto* list : {&times.forward, &times.backward, &times.weight_gradient})
        for (Seconds& t : *list) t = Seconds(0.1 * random.integer(2, 30));
      times.transfer = Seconds(0.1 * random.integer(0, 5));
      const auto fault = validate(of(p, m, times));
      CHECK_MESSAGE(!fault.has_value(), (fault ? fault->reason + "\n" + fault->grid : ""));
    }
  }
}

TEST_CASE("every rank holds p + 1 chunks, p + 2 with pending weight gradients: half of 1F1B's 2p") {
  for (int p = 2; p <= 12; ++p) {
    CAPTURE(p);
    const Schedule schedule = of(p, 5 * p, even(p, 1, 1, 1));
    for (const Actions& list : schedule.actions) {
      CHECK(most_held(list, false) == p + 1);
      CHECK(most_held(list, true) <= p + 2);
    }
    CHECK(v_half_limit(p) == (p + 2) / 2.0);
  }
}

TEST_CASE("equal times: about half of 1F1B's bubble, whatever the number of micro-batches") {
  std::vector<double> scratch;
  for (int p = 2; p <= 12; ++p) {
    for (const int m : {p, 2 * p, 5 * p + 1, 9 * p}) {
      CAPTURE(p);
      CAPTURE(m);
      const PipelineTimes times = even(p, 1, 1, 1);
      const double end = simulate_makespan(compile(of(p, m, times)), times, scratch).value;
      CHECK(end == pipeline_time(ScheduleKind::v_half, p, 2, m, Seconds(1), Seconds(1), Seconds(0),
                                 Seconds(1))
                       .value);
      const double bubble = end - 6.0 * m, of_1f1b = 6.0 * (p - 1);
      CHECK(bubble <= 0.55 * of_1f1b);
      CHECK(bubble_fraction(ScheduleKind::v_half, p, 2, m) ==
            doctest::Approx(bubble / (6.0 * m)).epsilon(1e-12));
    }
  }
}

TEST_CASE("no pipeline of it is shorter than its bounds, for any times") {
  fixtures::Random random(17);
  std::vector<double> scratch;
  for (int round = 0; round < 2000; ++round) {
    const int p = random.integer(1, 7), m = random.integer(1, 4 * p);
    PipelineTimes times = even(p, 1, 1, 1);
    for (auto* list : {&times.forward, &times.backward, &times.weight_gradient})
      for (Seconds& t : *list) t = Seconds(0.1 * random.integer(1, 30));
    times.transfer = Seconds(0.1 * random.integer(0, 3));
    CAPTURE(p);
    CAPTURE(m);
    const SimulationResult run = simulate(compile(of(p, m, times, 0.8)), times, scratch);
    Seconds span;
    for (std::size_t r = 0; r < run.finish.size(); ++r)
      span = max(span, run.finish[r] - run.begin[r]);
    const Seconds all = pipeline_lower_bound(ScheduleKind::v_half, p, 2, m, times);
    CHECK(all.value > 0);
    CHECK(all.value <= run.makespan.value * (1 + 1e-12));
    CHECK(split_span_bound(ScheduleKind::v_half, p, m, times).value <= span.value * (1 + 1e-12));
  }
}

TEST_CASE("a rank forwards what its row says before its first backward") {
  for (int p = 1; p <= 8; ++p) {
    const ActionsByRank lists = v_half_order({p, 2, 6 * p});
    for (int rank = 0; rank < p; ++rank) {
      const Actions& list = lists[static_cast<std::size_t>(rank)];
      const auto first = std::find_if(list.begin(), list.end(), [](const Action& action) {
        return action.kind == ActionKind::backward;
      });
      CHECK(static_cast<double>(first - list.begin()) ==
            v_half_forwards_first(rank, {p, 2, 6.0 * p, {}, {}, {}, {}}));
    }
  }
}

}  // namespace v_half_test
