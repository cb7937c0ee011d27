// What a plan's rows are computed from.
#include <doctest/doctest.h>

#include "costmodel/estimate/plan_inputs.hpp"
#include "tests/costmodel/support/fixtures.hpp"

namespace plan_inputs_test {

using namespace costmodel;

Workload workload(std::int64_t devices) {
  return {fixtures::gpt(24, 1024, 16, 51200, 512), fixtures::cluster(devices),
          fixtures::training(64, 512)};
}

TEST_CASE("ranks with the same weights: data times context, on the nodes they are on") {
  const Workload on = workload(64);
  ParallelPlan plan;
  plan.tp = 4, plan.dp = 8, plan.cp = 2;
  PriceCache cache;
  const PlanInputs in = plan_inputs(on, plan, cache.stages(plan, on.model), cache);
  CHECK(in.replicas.size == 16);
  CHECK(in.replicas.fan[0] == 2);
  CHECK(in.replicas.fan[1] == 8);
  CHECK(in.expert_replicas.size == in.replicas.size);
  CHECK(in.micro_batches == 8);
  CHECK(in.mixes().size() == 1);
}

TEST_CASE("a pipeline's ranks idle for (p - 1) / (m + p - 1) of the time") {
  const Workload on = workload(4);
  ParallelPlan plan;
  plan.pp = 4;
  PriceCache cache;
  const auto share = [&] {
    return idle_share(plan_inputs(on, plan, cache.stages(plan, on.model), cache));
  };
  CHECK(share() == doctest::Approx(3.0 / 67));
  plan.schedule = ScheduleKind::listed;  // from a file: no formula is known
  CHECK(share() == doctest::Approx(3.0 / 67));
}

TEST_CASE("a plan without a micro-batch is no plan") {
  const Workload on = workload(128);
  ParallelPlan plan;
  plan.dp = 128;
  PriceCache cache;
  CHECK_THROWS_AS(plan_inputs(on, plan, cache.stages(plan, on.model), cache), InternalError);
}

TEST_CASE("a cluster smaller than a node has no more ranks than devices") {
  CHECK(ranks_on_a_node(fixtures::cluster(4)) == 4);
  CHECK(ranks_on_a_node(fixtures::cluster(64)) == 8);
}

}  // namespace plan_inputs_test
