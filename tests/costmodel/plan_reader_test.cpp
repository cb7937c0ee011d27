// Plans as scenarios write them: stages of their own read, settled and written back.
#include "costmodel/plan_reader.hpp"

#include <doctest/doctest.h>

#include <string>

#include "costmodel/estimate.hpp"
#include "costmodel/json_estimate.hpp"
#include "tests/costmodel/scenarios.hpp"

namespace plan_reader_test {

using namespace costmodel;
using fixtures::contains;
using scenarios::tiny;

TEST_CASE("stages are read, settled and written back") {
  const Scenario s = scenarios::read(
      tiny +
      "cluster: {base: laptop-cpu, devices: 4}\n"
      "plan: {micro_batch: 2, stages: [{tp: 2, dp: 1, layers: 1, recompute: full}, {dp: 2, layers: "
      "3, zero: 1}]}\n");
  const ParallelPlan plan = resolve_plan(s);
  CHECK(plan.pp == 2);
  CHECK(plan.dp == 2);
  CHECK(plan.stage_layers == std::vector<int>{1, 3});
  CHECK(plan.stages[0] == StagePlan{2, 1, {Recomputation::full, 0}, 0, ""});
  CHECK(plan.stages[1] == StagePlan{1, 2, {}, 1, ""});
  Scenario again = s;
  again.plan = read_plan(parse_yaml(to_yaml(to_value(plan)), "again.yaml"));
  CHECK(resolve_plan(again) == plan);
  Evaluator evaluator(s.model, s.cluster, s.training);
  const auto json = plan_json(evaluator.estimate(plan));
  REQUIRE(json["stages"].size() == 2);
  CHECK(json["stages"][0]["micro_batch"] == 4);
  CHECK(json["stages"][1]["first_device"] == 2);
}

TEST_CASE("stages that cannot be read say so") {
  const auto fault_of = [](const std::string& plan) {
    return fixtures::config_error([&] {
      resolve_plan(
          scenarios::read(tiny + "cluster: {base: laptop-cpu, devices: 4}\nplan: " + plan + "\n"));
    });
  };
  CHECK(contains(fault_of("{stages: 3}"), "stages is not a list of stages"));
  CHECK(contains(fault_of("{stages: [{tp: 2}, {dp: 2}]}"), "the stage lacks dp"));
  CHECK(contains(fault_of("{stages: [{dp: 2, layers: 4}, {dp: 2}]}"),
                 "some stages say their layers"));
  CHECK(contains(fault_of("{stage_layers: [4, 4], stages: [{dp: 2, layers: 4}, {dp: 2}]}"),
                 "stages say their layers, and so does stage_layers; leave one of them out"));
  CHECK(contains(fault_of("{stages: [{dp: 2, width: 4}]}"), "width"));
  const std::string many = "{tp: 1000000, dp: 1000000}";
  CHECK(contains(fault_of("{cp: 1000000, stages: [" + many + ", " + many + "]}"),
                 "add up to 1,000,000,000,000,000,000 devices"));
  CHECK(contains(fault_of("{tp: auto, stages: [{dp: 2}, {dp: 2}]}"), "tp: auto beside stages"));
}

}  // namespace plan_reader_test
