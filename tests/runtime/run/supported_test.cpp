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

}  // namespace supported_test
