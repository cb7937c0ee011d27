// The closed forms by hand; simulator_test.cpp compares them with the simulator.
#include "costmodel/schedule/closed_form.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <string>

#include "costmodel/schedule/zero_bubble.hpp"
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

namespace {

// A row of the table in docs/schedules.md: what the formula and what the simulator says.
std::string bubble_row(ScheduleKind kind) {
  constexpr int p = 8, m = 24;
  const ScheduleRow& row = row_of(kind);
  const int v = row.fewest_chunks;
  constexpr double weight = 1;
  const auto n = static_cast<std::size_t>(p * v);
  PipelineTimes times;
  times.forward.assign(n, Seconds(1));
  times.backward.assign(n, Seconds(row.splits_backward ? 1 : 1 + weight));
  times.weight_gradient.assign(row.splits_backward ? n : 0, Seconds(weight));
  if (overlaps(kind)) times.together.assign(n, Seconds(3));
  const HeldShares shares{std::vector<double>(n, 1.0 / v), std::vector<double>(n, 1.0 / v)};
  const Schedule schedule = generate(kind, p, v, m, times, shares);
  std::vector<double> scratch;
  const SimulationResult run = simulate(compile(schedule), times, scratch);
  Seconds span;
  for (std::size_t r = 0; r < run.finish.size(); ++r)
    span = max(span, run.finish[r] - run.begin[r]);
  const double work = m * v * (2 + weight);
  const Seconds closed = pipeline_time(
      kind, {p, v, m, times.forward[0], times.backward[0], Seconds(0),
             Seconds(row.splits_backward ? weight : 0), overlaps(kind) ? Seconds(3) : Seconds(0)});
  const bool held = row.two_way || overlaps(kind);
  const double simulated = (held ? run.makespan : span).value - work;
  CHECK(std::abs(simulated - (closed.value - work)) <= 1e-9);
  return fmt::format("| {} | {} | {:.6f} | {:.6f} |\n", row.name, v, std::abs(closed.value - work),
                     std::abs(simulated));
}

}  // namespace

TEST_CASE("the bubbles of docs/schedules.md: formulas and simulator, to 1e-9") {
  std::string table = "| schedule | v | formula | simulated |\n|---|---|---|---|\n";
  for (std::size_t i = 0; i < schedule_names().size(); ++i) {
    const auto kind = static_cast<ScheduleKind>(i);
    CAPTURE(schedule_name(kind));
    if (kind == ScheduleKind::zero_bubble_v) continue;  // its bubble is none at equal times only
    table += bubble_row(kind);
  }
  std::ifstream in(std::string(SHARDPLAN_SOURCE_DIR) + "/docs/schedules.md");
  const std::string page((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  CHECK_MESSAGE(page.find(table) != std::string::npos, table);
}

}  // namespace closed_form_test
