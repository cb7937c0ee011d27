// DualPipe and DualPipeV against their repository's table: bubble, chunks in flight.
#include "costmodel/schedule/dualpipe.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "costmodel/base/error.hpp"
#include "costmodel/schedule/closed_form.hpp"
#include "costmodel/schedule/simulator.hpp"
#include "tests/costmodel/support/fixtures.hpp"

namespace dualpipe_test {

using namespace costmodel;

namespace {

struct Even {
  double forward, input, weight, together;
};

PipelineTimes times_of(int stages, const Even& e) {
  PipelineTimes times;
  const auto n = static_cast<std::size_t>(stages);
  times.forward.assign(n, Seconds(e.forward));
  times.backward.assign(n, Seconds(e.input));
  times.weight_gradient.assign(n, Seconds(e.weight));
  times.together.assign(n, Seconds(e.together));
  return times;
}

EvenPipeline pipeline_of(int p, int v, int m, const Even& e) {
  return {p,
          v,
          static_cast<double>(m),
          Seconds(e.forward),
          Seconds(e.input),
          Seconds(0),
          Seconds(e.weight),
          Seconds(e.together)};
}

int most_in_flight(const Actions& list) {
  int held = 0, most = 0;
  for (const Action& action : list) {
    if (action.kind == ActionKind::forward) most = std::max(most, ++held);
    if (action.kind == ActionKind::backward) --held;
  }
  return most;
}

// t_F equal to the input gradient's time and no less than t_W, t_F&B up to their sum.
Even drawn(fixtures::Random& random) {
  const double forward = random.real(0.5, 2), weight = forward * random.real(0, 1);
  return {forward, forward, weight, (2 * forward + weight) * random.real(0.7, 1)};
}

}  // namespace

TEST_CASE("the published bubble, (p/2 - 1)(t_F&B + t_B - 3 t_W), for even p and 2p or more") {
  fixtures::Random random(31);
  std::vector<double> scratch;
  for (int round = 0; round < 200; ++round) {
    const int p = 2 * random.integer(1, 8), m = 2 * random.integer(p, 3 * p);
    const Even e = drawn(random);
    CAPTURE(p);
    CAPTURE(m);
    const Schedule schedule = generate(ScheduleKind::dualpipe, p, 1, m);
    CHECK_FALSE(validate(schedule).has_value());
    const PipelineTimes times = times_of(p, e);
    const double end = simulate_makespan(compile(schedule), times, scratch).value;
    const double bubble = (p / 2.0 - 1) * (e.together + (e.input + e.weight) - 3 * e.weight);
    const double work =
        joined_work(ScheduleKind::dualpipe, p, m, times, p / 2).value;  // a middle rank's
    CHECK(std::abs(end - work - bubble) <= 1e-9);
    const Seconds closed = pipeline_time(ScheduleKind::dualpipe, pipeline_of(p, 1, m, e));
    CHECK(std::abs(end - closed.value) <= 1e-9);
    for (const Actions& list : schedule.actions) CHECK(most_in_flight(list) == p + 1);
  }
}

TEST_CASE("DualPipeV has the bubble and the chunks in flight of twice its ranks") {
  fixtures::Random random(32);
  std::vector<double> scratch;
  for (int round = 0; round < 200; ++round) {
    const int p = random.integer(1, 8), m = random.integer(2 * p, 5 * p);
    const Even e = drawn(random);
    CAPTURE(p);
    CAPTURE(m);
    const Schedule schedule = generate(ScheduleKind::dualpipe_v, p, 2, m);
    CHECK_FALSE(validate(schedule).has_value());
    const PipelineTimes times = times_of(2 * p, e);
    const double end = simulate_makespan(compile(schedule), times, scratch).value;
    const double bubble = (p - 1.0) * (e.together + (e.input + e.weight) - 3 * e.weight);
    const double work = joined_work(ScheduleKind::dualpipe_v, p, m, times, p - 1).value;
    CHECK(std::abs(end - work - bubble) <= 1e-9);
    const Seconds closed = pipeline_time(ScheduleKind::dualpipe_v, pipeline_of(p, 2, m, e));
    CHECK(std::abs(end - closed.value) <= 1e-9);
    for (const Actions& list : schedule.actions) CHECK(most_in_flight(list) == 2 * p + 1);
  }
}

TEST_CASE("a rank joins and forwards what its formulas say, and never ends before its work") {
  fixtures::Random random(33);
  std::vector<double> scratch;
  for (const ScheduleKind kind : {ScheduleKind::dualpipe, ScheduleKind::dualpipe_v}) {
    for (int p = 2; p <= 8; p += 2) {
      const int m = 2 * p + 2, v = row_of(kind).fewest_chunks;
      const Schedule schedule = generate(kind, p, v, m);
      const EvenPipeline sizes = pipeline_of(p, v, m, {1, 1, 1, 3});
      PipelineTimes times = times_of(schedule.stages(), {1, 1, 1, 3});
      for (auto* list : {&times.forward, &times.backward, &times.weight_gradient, &times.together})
        for (Seconds& t : *list) t = Seconds(random.real(0.1, 3));
      const double end = simulate_makespan(compile(schedule), times, scratch).value;
      for (int rank = 0; rank < p; ++rank) {
        const Actions& list = schedule.actions[static_cast<std::size_t>(rank)];
        double joined[2] = {0, 0};
        for (std::size_t i = 0; i + 1 < list.size(); ++i) {
          if (list[i].kind == ActionKind::forward && list[i + 1].beside)
            ++joined[schedule.chunk_of(list[i])];
        }
        for (int chunk = 0; chunk < 2; ++chunk)
          CHECK(joined[chunk] == row_of(kind).joined(rank, chunk, sizes));
        double first = 0;
        while (list[static_cast<std::size_t>(first)].kind == ActionKind::forward) ++first;
        CHECK(first == row_of(kind).forwards_first(rank, sizes));
        CHECK(joined_work(kind, p, m, times, rank).value <= end + 1e-9);
      }
    }
  }
}

TEST_CASE("odd ranks, odd or too few micro-batches have no order") {
  CHECK(takes_dualpipe(4, 8));
  CHECK_FALSE(takes_dualpipe(3, 8));
  CHECK_FALSE(takes_dualpipe(4, 9));
  CHECK_FALSE(takes_dualpipe(4, 6));
  CHECK(takes_dualpipe_v(3, 7));
  CHECK_FALSE(takes_dualpipe_v(3, 5));
  CHECK_THROWS_AS(dualpipe_order({4, 1, 6}), InternalError);
  CHECK(dualpipe_bubble(pipeline_of(8, 1, 16, {1, 1, 1, 3})) == doctest::Approx(6.0 / 48));
  CHECK(dualpipe_v_bubble(pipeline_of(4, 2, 8, {1, 1, 1, 3})) == doctest::Approx(6.0 / 48));
}

TEST_CASE("what cannot run together is refused") {
  Schedule s = generate(ScheduleKind::one_f_one_b, 1, 1, 2);
  s.actions[0][1].beside = true;  // the backward of the forward before it
  const auto fault = validate(s);
  REQUIRE(fault.has_value());
  CHECK(fault->reason == "0F0 and 0B0 cannot run together");
}

}  // namespace dualpipe_test
