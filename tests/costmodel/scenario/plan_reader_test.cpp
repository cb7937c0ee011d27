// Plans as scenarios write them: stages of their own read, settled and written back.
#include "costmodel/scenario/plan_reader.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <tuple>

#include "costmodel/estimate/json_estimate.hpp"
#include "costmodel/estimate/plan_estimate.hpp"
#include "costmodel/plan/plan_keys.hpp"
#include "tests/costmodel/support/scenarios.hpp"

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
  const auto json = plan_json(estimate_of(s.model, s.cluster, s.training, plan));
  REQUIRE(json["stages"].size() == 2);
  CHECK(json["stages"][0]["micro_batch"] == 4);
  CHECK(json["stages"][1]["first_device"] == 2);
}

TEST_CASE("a stage's cp, its exchange, ep and etp are its own or the plan's, and written back") {
  Scenario s = scenarios::read(
      "model: {base: mixtral-8x7b, layers: 4}\n"
      "cluster: {base: dgx-h100, devices: 16}\n"
      "training: {global_batch: 16, sequence: 8192, stack: megatron-core-2025}\n");
  const auto settled = [&s](const std::string& plan) {
    s.plan = read_plan(parse_yaml(plan, "plan.yaml"));
    return resolve_plan(s);
  };
  const auto sizes = [](const StagePlan& stage) {
    return std::tuple{stage.cp, stage.cp_comm, stage.ep, stage.etp};
  };
  constexpr auto p2p = ContextExchange::p2p, a2a = ContextExchange::a2a;
  // The plan's are the default; without context parallelism there is no exchange.
  const std::string of_plan =
      "{cp: 2, cp_comm: a2a, ep: 4, stages: [{dp: 4}, {cp: 1, dp: 8, ep: 8, cp_comm: all_gather}]}";
  const ParallelPlan both = settled(of_plan);
  CHECK(sizes(both.stages[0]) == std::tuple{2, a2a, 4, 1});
  CHECK(sizes(both.stages[1]) == std::tuple{1, p2p, 8, 1});
  CHECK(both.devices() == 16);
  const std::string of_stages =
      "{stages: [{tp: 2, cp: 2, dp: 2, ep: 2, etp: 2}, {cp: 4, cp_comm: a2a, dp: 2}]}";
  const ParallelPlan own = settled(of_stages);
  CHECK(sizes(own.stages[0]) == std::tuple{2, p2p, 2, 2});
  CHECK(sizes(own.stages[1]) == std::tuple{4, a2a, 1, 1});
  CHECK(own.cp == 1);
  for (const ParallelPlan& plan : {both, own}) CHECK(settled(to_yaml(to_value(plan))) == plan);
  // What equals the plan's is left out.
  const Value written = to_value(both);
  const auto stages = std::find_if(written.entries.begin(), written.entries.end(),
                                   [](const Value::Entry& entry) { return entry.key == "stages"; });
  REQUIRE(stages != written.entries.end());
  const auto keys = [&](std::size_t k) {
    std::set<std::string> all;
    for (const auto& entry : stages->value.items[k].entries) all.insert(entry.key);
    return all;
  };
  CHECK(keys(0) == std::set<std::string>{"tp", "dp", "recompute", "zero"});
  CHECK(keys(1) == std::set<std::string>{"tp", "dp", "cp", "ep", "recompute", "zero"});
  const auto json = plan_json(estimate_of(s.model, s.cluster, s.training, own));
  CHECK(json["stages"][0]["cp"] == 2);
  CHECK(json["stages"][0]["etp"] == 2);
  CHECK(json["stages"][1]["cp_comm"] == "a2a");
  CHECK(json["stages"][1]["ep"] == 1);
  CHECK(json["stages"][1]["devices"] == 8);
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
  CHECK(contains(fault_of("{stages: [{dp: 2, cp: 0}, {dp: 2}]}"), "cp"));
  CHECK(contains(fault_of("{stages: [{dp: 2, cp_comm: ring}, {dp: 2}]}"), "ring"));
  CHECK(contains(fault_of("{tp: auto, stages: [{dp: 2}, {dp: 2}]}"), "tp: auto beside stages"));
}

TEST_CASE("auto in place of a plan is auto for every key that has a search") {
  const auto plan_of = [](const std::string& plan) {
    return scenarios::read(scenarios::tiny + "cluster: laptop-cpu\nplan: " + plan + "\n").plan;
  };
  const PlanRequest all = plan_of("auto"), but_one = plan_of("{base: auto, tp: 4}");
  for (const char* key :
       {"tp", "pp", "vpp", "micro_batch", "zero", "recompute", "schedule", "stage_layers"})
    CHECK(all.is_auto(key));
  CHECK(!but_one.is_auto("tp"));
  CHECK(but_one.tp == 4);
  CHECK(but_one.is_auto("pp"));
  CHECK(but_one.automatic.size() + 1 == all.automatic.size());
  const auto fault = [&](const std::string& plan) {
    return fixtures::config_error([&] { plan_of(plan); });
  };
  CHECK(fault("best") == "test.yaml:4:7: plan is 'best'; write auto, or a map: {tp: 8, ...}");
  CHECK(fixtures::contains(fault("{base: mine, tp: 2}"), "the base of a plan is auto or nothing"));
}

}  // namespace plan_reader_test
