// All schedules of one scenario beside one another.
#include "planner/report/schedule_comparison.hpp"

#include <doctest/doctest.h>

#include "tests/costmodel/support/fixtures.hpp"

namespace schedule_comparison_test {

using namespace planner;

namespace {

const ComparedSchedule& named(const std::vector<ComparedSchedule>& all, const std::string& name) {
  for (const ComparedSchedule& one : all)
    if (one.name == name) return one;
  FAIL(name);
  return all.front();
}

std::vector<ComparedSchedule> compared(int pp, int batch) {
  costmodel::Scenario s;
  s.model = fixtures::gpt(16, 1024, 16, 51200, 512);
  s.cluster = fixtures::cluster(pp);
  s.training = fixtures::training(batch, 512);
  costmodel::ParallelPlan plan;
  plan.pp = pp;
  return compared_schedules(s, plan);
}

}  // namespace

TEST_CASE("every schedule has a row, with the figures that its plan has alone") {
  const auto all = compared(4, 16);
  CHECK(all.size() == costmodel::schedule_names().size());
  for (const ComparedSchedule& one : all) {
    CAPTURE(one.name);
    CHECK(one.refused == "");
    CHECK(one.estimate.bubble_fraction >= 0);
    CHECK_FALSE(one.timeline.events.empty());
  }
  const auto bubble = [&](const char* name) { return named(all, name).estimate.bubble_fraction; };
  CHECK(bubble("serial") > bubble("gpipe"));
  CHECK(bubble("1f1b") > bubble("interleaved"));
  CHECK(bubble("1f1b") > bubble("zero-bubble-h1"));
  CHECK_FALSE(named(all, "dualpipe").offered);
  const auto peak = [&](const char* name) { return named(all, name).estimate.peak; };
  const auto held = [&](const char* name) {
    return named(all, name).estimate.memory[0].in_flight_micro_batches;
  };
  CHECK(held("1f1b") == 4);
  CHECK(held("v-min") < 3);
  CHECK(held("dualpipe") > 4);
  CHECK(peak("dualpipe") > peak("dualpipe-v"));
}

TEST_CASE("serial and ideal bound schedules with one stage on a rank; two may beat ideal") {
  const auto all = compared(4, 16);  // the last stage has the loss: the stages are unequal
  const auto pipeline = [&](const char* name) { return named(all, name).estimate.pipeline; };
  for (const char* name : {"gpipe", "1f1b", "zero-bubble-h1", "zero-bubble-h2"}) {
    CAPTURE(name);
    CHECK(pipeline(name) >= pipeline("ideal"));
    CHECK(pipeline(name) <= pipeline("serial"));
  }
  CHECK(pipeline("dualpipe") < pipeline("ideal"));
}

TEST_CASE("what there is no order for says why") {
  const auto all = compared(4, 4);
  CHECK(fixtures::contains(named(all, "dualpipe").refused, "2 pp = 8 micro-batches at least"));
  CHECK(fixtures::contains(schedule_comparison(all), "dualpipe: dualpipe needs an even number"));
}

}  // namespace schedule_comparison_test
