#include "planner/accuracy/trace_explanation.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/costmodel/support/fixtures.hpp"

namespace trace_explanation_test {

using costmodel::Seconds;
using fixtures::contains;
using planner::FittedTrace;
using planner::gains_of;

namespace {

planner::TraceExplanation explained() {
  planner::TraceExplanation all;
  FittedTrace& of = all.trace;
  of.read.times.kinds[3] = Seconds(0.5);
  of.read.times.kernels = of.read.times.busy = Seconds(0.6);
  of.read.times.exposed = Seconds(0.1);
  of.before.kinds[3] = 0.3;
  of.unprofiled = Seconds(1);
  of.host_bound = true;
  return all;
}

}  // namespace

TEST_CASE("gains are the waiting, what nothing hides, and kinds slower than predicted") {
  const auto gains = gains_of(explained(), Seconds(0.01));
  REQUIRE(gains.size() == 3);
  CHECK(gains[0].gained.value == doctest::Approx(0.39));
  CHECK(gains[1].gained.value == doctest::Approx(0.2));
  CHECK(gains[2].gained.value == doctest::Approx(0.1));
  CHECK(contains(gains[0].what, "waits for the host"));
}

TEST_CASE("a device that does not wait gains nothing by fewer launches") {
  planner::TraceExplanation all = explained();
  all.trace.host_bound = false;
  CHECK(gains_of(all, {}).size() == 2);
}

TEST_CASE("the slowest of several ranks is named, and what the others wait for it is a gain") {
  planner::TraceExplanation all = explained();
  all.ranks = {{"a", 0, {}}, {"b", 5, {}}};
  all.ranks[0].times.kernels = Seconds(0.5);
  all.ranks[1].times.kernels = Seconds(0.6);
  CHECK(contains(planner::explanation_report(all), "Rank 5 computes 20.0 % longer than rank 0"));
  const auto waits = [&] {
    const auto gains = gains_of(all, Seconds(0.01));
    return std::ranges::count_if(
        gains, [](const auto& gain) { return contains(gain.what, "the others wait for it"); });
  };
  CHECK(waits() == 1);
  all.ranks[1].times.kernels = Seconds(0.5);
  CHECK(waits() == 0);
  CHECK(contains(planner::explanation_report(all), "No rank computes 2 % longer than another"));
}

}  // namespace trace_explanation_test
