// The pipelines of a plan together: one is what it is alone, several wait for one another.
#include "costmodel/estimate/pipelines_together.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "costmodel/estimate/evaluator.hpp"
#include "tests/costmodel/support/scenarios.hpp"

namespace pipelines_together_test {

using namespace costmodel;

namespace {

const std::string training =
    "model: {base: gpt2-medium, layers: 8}\n"
    "training: {global_batch: 24, sequence: 1024, precision: fp16, stack: megatron-core-2025}\n";

struct Priced {
  explicit Priced(const Scenario& s) : evaluator(s.model, s.cluster, s.training) {
    plan = resolve_plan(s);
    estimate = evaluator.estimate(plan);
    timeline = evaluator.timeline(plan);
  }
  Evaluator evaluator;
  ParallelPlan plan;
  Estimate estimate;
  Timeline timeline;
};

void check_same(const Priced& one, const Priced& other) {
  const Estimate &a = one.estimate, &b = other.estimate;
  CHECK(a.iteration == b.iteration);
  CHECK(a.interval.high == b.interval.high);
  CHECK(a.breakdown.total() == b.breakdown.total());
  CHECK(a.breakdown.other == b.breakdown.other);
  CHECK(a.critical_rank == b.critical_rank);
  CHECK(a.pipeline == b.pipeline);
  CHECK(a.bubble_fraction == b.bubble_fraction);
  CHECK(a.stage_forward == b.stage_forward);
  CHECK(a.stage_backward == b.stage_backward);
  CHECK(a.peak == b.peak);
  CHECK(a.capacity == b.capacity);
  CHECK(a.rank_traffic == b.rank_traffic);
  CHECK(a.hardware_flops == b.hardware_flops);
  CHECK(a.mfu == b.mfu);
  REQUIRE(one.timeline.events.size() == other.timeline.events.size());
  for (std::size_t i = 0; i < one.timeline.events.size(); ++i) {
    CHECK(one.timeline.events[i].name == other.timeline.events[i].name);
    CHECK(one.timeline.events[i].end == other.timeline.events[i].end);
  }
}

}  // namespace

// Of 12 devices half a node is left out, and so is the plan of stages with places of their own.
TEST_CASE("a plan is priced alike on a cluster, on its only group, and as that group's replicas") {
  for (const int dp : {2, 3}) {
    CAPTURE(dp);
    const int devices = 4 * dp;
    const std::string alone =
        "cluster: {base: dgx-h100, devices: " + std::to_string(devices) + "}\n";
    const std::string grouped = scenarios::joined(scenarios::group("h100", "dgx-h100", devices));
    const std::string sizes = "tp: 2, pp: 2, micro_batch: 2, zero: 1, recompute: full";
    const std::string even = "plan: {" + sizes + "}\n";
    const std::string listed = "plan: {replicas: [{group: h100, " + sizes +
                               ", micro_batches: " + std::to_string(12 / dp) + "}]}\n";
    const Priced plain(scenarios::read(training + alone + even));
    if (dp == 2) check_same(plain, Priced(scenarios::read(training + grouped + even)));
    check_same(plain, Priced(scenarios::read(training + grouped + listed)));
  }
}

TEST_CASE("one pipeline is priced by the evaluator of the entire cluster, and sums with nobody") {
  const Scenario s = scenarios::read(training +
                                     "cluster: {base: dgx-h100, devices: 8}\n"
                                     "plan: {pp: 4, micro_batch: 1}\n");
  Priced one(s);
  const PlacedPipelines pipelines(one.plan, one.evaluator);
  REQUIRE(pipelines.size() == 1);
  CHECK(pipelines[0].evaluator == &one.evaluator);
  CHECK(pipelines.across() == Seconds(0));
  const Ending alone = one.evaluator.end_of(one.plan);
  const TogetherEnd together = pipelines.together({&alone, 1});
  CHECK(together.end.iteration == alone.iteration);
  CHECK(together.end.meeting == alone.meeting);
  CHECK(together.end.critical == alone.critical);
  CHECK(one.estimate.iteration == alone.iteration);
}

TEST_CASE("several pipelines end with the last, whose parts make up the iteration") {
  const Scenario s = scenarios::read(
      training + scenarios::mixed(4, 2) +
      "plan: {replicas: [{group: h100, dp: 4, micro_batches: 4, zero: 1},\n"
      "                  {group: a100, pp: 2, micro_batch: 2, micro_batches: 4, zero: 0}]}\n");
  Priced both(s);
  const PlacedPipelines pipelines(both.plan, both.evaluator);
  REQUIRE(pipelines.size() == 2);
  std::vector<Ending> ends;
  for (const PlacedPipeline& one : pipelines) {
    CHECK(one.evaluator->cluster().devices == one.pipeline.plan.devices());
    ends.push_back(one.evaluator->end_of(one.pipeline.plan));
  }
  const TogetherEnd all = pipelines.together(ends);
  CHECK(all.last == (ends[0].meeting > ends[1].meeting ? 0 : 1));
  CHECK(all.end.meeting == costmodel::max(ends[0].meeting, ends[1].meeting) + pipelines.across());
  CHECK(pipelines.across() == sum_across(s.model, s.cluster, s.training));
  CHECK(both.estimate.iteration == all.end.iteration);
  CHECK(both.estimate.breakdown.total().value ==
        doctest::Approx(all.end.iteration.value).epsilon(1e-12));
  const Estimate& e = both.estimate;
  CHECK(e.memory[e.fullest].total() == e.peak);
  CHECK(e.stage_capacity[e.fullest] == e.capacity);
}

}  // namespace pipelines_together_test
