// What of plans the runtime refuses, with its place.
#include "runtime/run/supported.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/costmodel/support/scenarios.hpp"

namespace supported_test {

using costmodel::ParallelPlan;
using costmodel::StagePlan;

TEST_CASE("context and expert parallelism of a plan or of one stage is refused, by its name") {
  const costmodel::Scenario s = scenarios::read(
      "model: llama-tiny\ncluster: {base: laptop-cpu, devices: 4}\n"
      "training: {global_batch: 16, sequence: 128, precision: fp32, stack: shardplan-cpu}\n");
  const auto refusals = [&s](const ParallelPlan& plan) {
    std::vector<std::string> all;
    for (const auto& fault : runtime::unsupported(s.model, s.training, plan))
      all.push_back(fault.key + ": " + fault.reason + "; " + fault.remedy);
    return all;
  };
  using Lines = std::vector<std::string>;
  ParallelPlan plan;
  CHECK(refusals(plan).empty());
  plan.cp = 2;
  CHECK(refusals(plan) == Lines{"cp: the runtime has no context parallelism; set cp: 1"});
  // Stages that differ say theirs; the plan's is their default.
  StagePlan context, experts;
  context.cp = 2;
  experts.ep = 2;
  plan.pp = 3;
  plan.stages = {StagePlan{}, context, experts};
  CHECK(refusals(plan) ==
        Lines{"stages: stage 1: the runtime has no context parallelism; set cp: 1",
              "stages: stage 2: the runtime has no expert parallelism; set ep: 1 and etp: 1"});
  plan.stages = {StagePlan{}, StagePlan{}, StagePlan{}};
  CHECK(refusals(plan).empty());
}

TEST_CASE("a frozen base is refused, full fine-tuning is not") {
  costmodel::Scenario s = scenarios::read(scenarios::tiny + "cluster: {base: laptop-cpu}\n");
  const ParallelPlan plan;
  s.training.fine_tuning.method = costmodel::FineTuningMethod::full;
  CHECK(runtime::unsupported(s.model, s.training, plan).empty());
  s.training.fine_tuning.method = costmodel::FineTuningMethod::lora;
  const auto refused = runtime::unsupported(s.model, s.training, plan);
  REQUIRE(refused.size() == 1);
  CHECK(refused.front().reason ==
        "the runtime trains all weights: it has no adapters and no frozen base");
  CHECK(refused.front().remedy == "leave training.fine_tuning out, or set its method: full");
}

TEST_CASE("towers are refused by their name alone") {
  costmodel::Scenario s = scenarios::read(scenarios::tiny + "cluster: {base: laptop-cpu}\n");
  s.model.towers = std::make_shared<const costmodel::Towers>();
  const auto refused = runtime::unsupported(s.model, s.training, ParallelPlan{});
  REQUIRE(refused.size() == 1);
  CHECK(refused.front().reason == "the runtime has no towers");
}

}  // namespace supported_test
