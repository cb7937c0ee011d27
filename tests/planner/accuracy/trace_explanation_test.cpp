#include "planner/accuracy/trace_explanation.hpp"

#include <doctest/doctest.h>

#include "tests/costmodel/support/fixtures.hpp"

namespace trace_explanation_test {

using costmodel::Seconds;
using fixtures::contains;
using planner::FittedTrace;
using planner::gains_of;

namespace {

FittedTrace trace() {
  FittedTrace of;
  of.read.times.kinds[3] = Seconds(0.5);
  of.read.times.kernels = of.read.times.busy = Seconds(0.6);
  of.read.times.exposed = Seconds(0.1);
  of.before.kinds[3] = 0.3;
  of.unprofiled = Seconds(1);
  of.host_bound = true;
  return of;
}

}  // namespace

TEST_CASE("gains are the waiting, what nothing hides, and kinds slower than predicted") {
  const auto gains = gains_of(trace(), Seconds(0.01));
  REQUIRE(gains.size() == 3);
  CHECK(gains[0].gained.value == doctest::Approx(0.39));
  CHECK(gains[1].gained.value == doctest::Approx(0.2));
  CHECK(gains[2].gained.value == doctest::Approx(0.1));
  CHECK(contains(gains[0].what, "waits for the host"));
}

TEST_CASE("a device that does not wait gains nothing by fewer launches") {
  FittedTrace of = trace();
  of.host_bound = false;
  CHECK(gains_of(of, {}).size() == 2);
}

TEST_CASE("the slowest of several ranks is named") {
  planner::TraceExplanation all;
  all.trace = trace();
  all.ranks = {{"a", 0, {}}, {"b", 5, {}}};
  all.ranks[0].times.kernels = Seconds(0.5);
  all.ranks[1].times.kernels = Seconds(0.6);
  CHECK(contains(planner::explanation_report(all), "Rank 5 computes 20.0 % longer than rank 0"));
}

}  // namespace trace_explanation_test
