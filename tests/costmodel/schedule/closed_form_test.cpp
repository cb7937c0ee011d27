// The closed forms by hand; simulator_test.cpp compares them with the simulator.
#include "costmodel/schedule/closed_form.hpp"

#include <doctest/doctest.h>

#include "tests/costmodel/support/fixtures.hpp"

namespace closed_form_test {

using namespace costmodel;

TEST_CASE("pipeline time by hand: f 1, b 2, four ranks, eight micro-batches") {
  const auto time = [](ScheduleKind kind, int v, double transfer = 0) {
    return pipeline_time(kind, 4, v, 8, Seconds(1.0 / v), Seconds(2.0 / v), Seconds(transfer))
        .value;
  };
  CHECK(time(ScheduleKind::ideal, 1) == 24);
  CHECK(time(ScheduleKind::serial, 1) == 96);
  CHECK(time(ScheduleKind::gpipe, 1) == 33);
  CHECK(time(ScheduleKind::one_f_one_b, 1) == 33);
  CHECK(time(ScheduleKind::interleaved, 2) == 28.5);
  CHECK(time(ScheduleKind::interleaved, 3) == doctest::Approx(27).epsilon(1e-12));
  CHECK(time(ScheduleKind::gpipe, 1, 0.5) == 36);    // three hops each way
  CHECK(time(ScheduleKind::serial, 1, 0.5) == 120);  // for every micro-batch
}

TEST_CASE("bubble fractions: (p-1)/m, (p-1)/vm, and their place in the time") {
  CHECK(bubble_fraction(ScheduleKind::ideal, 4, 1, 8) == 0);
  CHECK(bubble_fraction(ScheduleKind::serial, 4, 1, 8) == 3);
  CHECK(bubble_fraction(ScheduleKind::gpipe, 4, 1, 8) == 3.0 / 8);
  CHECK(bubble_fraction(ScheduleKind::one_f_one_b, 4, 1, 8) == 3.0 / 8);
  CHECK(bubble_fraction(ScheduleKind::interleaved, 4, 2, 8) == 3.0 / 16);
  for (const auto kind : {ScheduleKind::ideal, ScheduleKind::serial, ScheduleKind::gpipe,
                          ScheduleKind::one_f_one_b, ScheduleKind::interleaved}) {
    for (int p = 1; p <= 8; ++p) {
      for (int groups = 1; groups <= 4; ++groups) {
        const int v = kind == ScheduleKind::interleaved ? 3 : 1, m = p * groups;
        const double time = pipeline_time(kind, p, v, m, Seconds(0.25), Seconds(0.5)).value;
        const double work = 0.75 * v * m;
        CHECK(fixtures::relative_error((time - work) / work, bubble_fraction(kind, p, v, m)) <=
              1e-12);
      }
    }
  }
}

TEST_CASE("the bound sees the slowest stage, the fill and the drain") {
  PipelineTimes times;
  times.forward = {Seconds(1), Seconds(4), Seconds(1)};
  times.backward = {Seconds(2), Seconds(8), Seconds(2)};
  // Stage 1: filled after 1, works 10 x 12, drained after 2 more.
  CHECK(pipeline_lower_bound(ScheduleKind::one_f_one_b, 3, 1, 10, times).value >= 120 + 2);
  CHECK(pipeline_lower_bound(ScheduleKind::ideal, 3, 1, 10, times).value == 120);
}

}  // namespace closed_form_test
