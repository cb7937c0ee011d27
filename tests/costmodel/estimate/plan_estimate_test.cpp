// The estimate of one plan is that of an evaluator which has priced other plans before.
#include "costmodel/estimate/plan_estimate.hpp"

#include <doctest/doctest.h>

#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/scenario/scenario.hpp"
#include "tests/costmodel/support/scenarios.hpp"

TEST_CASE("the estimate of one plan is an evaluator's") {
  const costmodel::Scenario s = scenarios::read(
      "model: llama-3-8b\ncluster: {base: dgx-h100, devices: 8}\n"
      "training: {global_batch: 32, sequence: 4096}\nplan: {tp: 2, pp: 2, zero: 1}\n");
  costmodel::Evaluator evaluator(s.model, s.cluster, s.training);
  costmodel::ParallelPlan other = resolve_plan(s);
  other.recompute.granularity = costmodel::Recomputation::full;
  evaluator.estimate(other);
  const auto expected = evaluator.estimate(resolve_plan(s));
  const auto own = estimate_of(s.model, s.cluster, s.training, resolve_plan(s));
  CHECK(own.iteration == expected.iteration);
  CHECK(own.peak == expected.peak);
  CHECK(own.traffic.total() == expected.traffic.total());
}
