// Each fault changes the job in its own respect, and can be only where there is something to
// change.
#include "planner/diagnosis/job_faults.hpp"

#include <doctest/doctest.h>

#include <string>

#include "planner/diagnosis/job_hypotheses.hpp"
#include "planner/diagnosis/job_prediction.hpp"
#include "tests/planner/support/planted_logs.hpp"

namespace job_faults_test {

using namespace planner;

namespace {

struct Asked {
  costmodel::Scenario scenario;
  Job job;
  costmodel::Seconds iteration;

  explicit Asked(const std::string& name) {
    for (const auto& one : planted::cases())
      if (one.name == name) scenario = planted::scenario_of(one);
    job = {
        .cluster = scenario.cluster, .training = scenario.training, .plan = resolve_plan(scenario)};
    iteration = predict(job, scenario.model, {})->iteration;
  }
  std::vector<Variant> variants(std::string_view name) const {
    for (const Hypothesis& h : hypotheses())
      if (h.name == name) return h.variants({job, scenario.model, iteration});
    throw std::logic_error(std::string(name));
  }
};

}  // namespace

TEST_CASE("faults that take time are predicted slower, by more where they are larger") {
  const Asked asked("bridge_tp_across_nodes");
  for (const char* name : {"slow-node", "slow-devices", "slow-network", "host-bound"}) {
    CAPTURE(name);
    double last = asked.iteration.value;
    const auto variants = asked.variants(name);
    CHECK(variants.size() >= 3);
    for (const Variant& v : variants) {
      const auto p = predict(v.job, asked.scenario.model, {});
      REQUIRE(p);
      CHECK(p->iteration.value > last);
      last = p->iteration.value;
    }
  }
  for (const char* name : {"tp-across-nodes", "no-gradient-overlap", "recomputation",
                           "eager-attention", "no-nvlink"}) {
    CAPTURE(name);
    for (const Variant& v : asked.variants(name)) {
      const auto p = predict(v.job, asked.scenario.model, {});
      REQUIRE(p);
      CHECK(p->iteration > asked.iteration);
      CHECK_FALSE(v.text.empty());
    }
  }
}

TEST_CASE("a wait for data is as long as it is given, or only now and then") {
  const Asked asked("megatron_slow_node");
  const auto variants = asked.variants("data-stall");
  REQUIRE(variants.size() == 8);
  CHECK(variants[0].job.slow_iterations > asked.job.slow_iterations);
  CHECK(variants[0].job.data.value == 0);
  const auto p = predict(variants[2].job, asked.scenario.model, {});
  CHECK((p->iteration - asked.iteration).value ==
        doctest::Approx(0.25 * asked.iteration.value).epsilon(0.02));
}

TEST_CASE("what a job does not have cannot be at fault") {
  const Asked asked("megatron_no_overlap");  // t 1, bf16
  CHECK(asked.variants("tp-across-nodes").empty());
  CHECK(asked.variants("no-tp-overlap").empty());
  CHECK(asked.variants("not-narrow").empty());
  CHECK(asked.variants("not-compiled").empty());
  CHECK(asked.variants("no-gradient-overlap").size() == 1);
  CHECK(Asked("nemo_fp8_inactive").variants("not-narrow").size() == 1);
  CHECK(Asked("torchtitan_recomputation").variants("recomputation").size() == 1);  // full only
}

TEST_CASE("other micro-batches and batches name both") {
  const Asked asked("megatron_micro_batch");
  const auto variants = asked.variants("micro-batch");
  REQUIRE(variants.size() == 4);
  CHECK(variants[0].text == "micro-batches of 8 instead of 4");
  CHECK(variants[3].job.plan.micro_batch == 1);
  CHECK(asked.variants("global-batch")[0].job.training.global_batch == 1024);
}

TEST_CASE("experts, offload and precision can be at fault only where they are") {
  const Asked dense("megatron_no_overlap");  // gpt3-6.7b in bf16, ZeRO 1 on 128 devices
  CHECK(dense.variants("expert-imbalance").empty());
  CHECK(dense.variants("dispatcher").empty());
  CHECK(dense.variants("full-precision").size() == 4);
  CHECK(dense.variants("zero-stage").size() == 3);
  CHECK(dense.variants("few-micro-batches").empty());
  for (const Variant& v : dense.variants("offload")) CHECK(v.job.plan.offload.optimizer == 1);
}

TEST_CASE("links over PCIe are slower than those that a node has") {
  const Asked asked("megatron_no_overlap");
  double last = 1;
  for (const Variant& v : asked.variants("no-nvlink")) {
    const double share =
        v.job.cluster.tiers.front().bandwidth / asked.job.cluster.tiers.front().bandwidth;
    CHECK(share < last);
    CHECK(v.size == doctest::Approx(100 * share));
    last = share;
  }
  CHECK(last < 0.1);
}

}  // namespace job_faults_test
