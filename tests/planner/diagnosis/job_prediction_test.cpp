// The parts of a predicted iteration against the estimate that they come from.
#include "planner/diagnosis/job_prediction.hpp"

#include <doctest/doctest.h>

#include "costmodel/estimate/plan_estimate.hpp"
#include "tests/planner/support/planted_logs.hpp"

namespace job_prediction_test {

using namespace planner;
using costmodel::Seconds;

namespace {

PredictedPart part(const PredictedJob& p, JobPart which) {
  return p.parts[static_cast<std::size_t>(which)];
}

struct Priced {
  costmodel::Scenario scenario = planted::scenario_of(planted::cases().front());
  Job job{
      .cluster = scenario.cluster, .training = scenario.training, .plan = resolve_plan(scenario)};
};

}  // namespace

TEST_CASE(
    "two stages: forward and backward of all micro-batches on the least and the most loaded") {
  const Priced one;
  const auto p = predict(one.job, one.scenario.model, {.reserved = true});
  REQUIRE(p);
  const auto e = estimate_of(one.scenario.model, one.job.cluster, one.job.training, one.job.plan);
  REQUIRE(e.stage_forward.size() == 2);
  const auto m = static_cast<double>(e.micro_batches);
  CHECK(part(*p, JobPart::forward).least.value == doctest::Approx(m * e.stage_forward[0].value));
  CHECK(part(*p, JobPart::forward).most.value == doctest::Approx(m * e.stage_forward[1].value));
  CHECK(part(*p, JobPart::backward).most.value == doctest::Approx(m * e.stage_backward[1].value));
  CHECK(p->iteration == e.iteration);
  CHECK(p->allocated < p->reserved);
  CHECK(p->reserved < e.peak);
  const Seconds pipeline = part(*p, JobPart::forward_backward).most;
  CHECK(pipeline >= e.pipeline);
  CHECK(pipeline <= e.iteration);
  CHECK(part(*p, JobPart::optimizer).most >= e.breakdown.optimizer);
}

TEST_CASE("waiting for data is a part of its own, and of forward where the log counts it so") {
  Priced one;
  one.job.data = Seconds(0.5);
  const auto apart = predict(one.job, one.scenario.model, {});
  const auto within = predict(one.job, one.scenario.model, {.data_in_forward = true});
  REQUIRE(apart);
  REQUIRE(within);
  CHECK(part(*apart, JobPart::data).most.value == 0.5);
  CHECK(part(*within, JobPart::forward).most.value ==
        doctest::Approx(part(*apart, JobPart::forward).most.value + 0.5));
}

TEST_CASE("the gather of parameters counts with the optimizer where it is not overlapped") {
  Priced one;
  const auto with = predict(one.job, one.scenario.model, {});
  one.job.training.overlap.overlap_param_gather = false;
  const auto without = predict(one.job, one.scenario.model, {});
  CHECK(part(*without, JobPart::optimizer).most > part(*with, JobPart::optimizer).most);
}

TEST_CASE("a plan that breaks a rule is not predicted") {
  Priced one;
  one.job.plan.micro_batch = 7;
  CHECK_FALSE(predict(one.job, one.scenario.model, {}));
}

}  // namespace job_prediction_test
