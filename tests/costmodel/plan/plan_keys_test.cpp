// Every key of `plan` comes back from every format that writes it. The rows are walked, so a key
// without a sample fails.
#include "costmodel/plan/plan_keys.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "costmodel/estimate/json_estimate.hpp"
#include "costmodel/estimate/plan_estimate.hpp"
#include "costmodel/scenario/plan_reader.hpp"
#include "tests/costmodel/support/plan_samples.hpp"

namespace plan_keys_test {

using namespace costmodel;
using plan_samples::Sample;

namespace {

ParallelPlan read_back(const Scenario& s, const std::string& plan) {
  Scenario again = s;
  again.plan = read_plan(parse_yaml(plan, "again.yaml"));
  settle_split(again.model, again.plan);
  return resolve_plan(again);
}

// What `evaluate --format json` prints of the plan, less what a scenario does not say: the numbers
// that follow from it, and sizes that stages or groups have each for themselves.
std::string printed_json(const Estimate& e) {
  auto json = plan_json(e);
  json.erase("devices");
  json.erase("micro_batches");
  if (json.contains("replicas")) {
    for (const char* key : {"tp", "pp", "dp", "micro_batch", "recompute", "zero"}) json.erase(key);
  }
  if (json.contains("stages")) {
    json.erase("stage_layers");
    for (auto& stage : json["stages"]) {
      for (const char* key : {"first_device", "devices", "micro_batch"}) stage.erase(key);
    }
  }
  return json.dump();
}

}  // namespace

TEST_CASE("every key of a plan has a sample") {
  for (const PlanKey& key : plan_key_rows()) {
    CAPTURE(key.row.name);
    CHECK(std::any_of(plan_samples::all.begin(), plan_samples::all.end(),
                      [&](const Sample& sample) { return sample.key == key.row.name; }));
  }
}

TEST_CASE("what YAML and JSON print of a plan is read as the same plan, of the same time") {
  for (const Sample& sample : plan_samples::all) {
    CAPTURE(sample.key);
    CAPTURE(sample.value);
    const Scenario s = plan_samples::with(sample);
    const ParallelPlan plan = resolve_plan(s);
    // Of these the first two change nothing here, and without the last there is no plan.
    if (sample.value != "none" && sample.key != "dp" && sample.key != "replicas")
      CHECK(plan != resolve_plan(plan_samples::without(sample)));
    const Estimate e = estimate_of(s.model, s.cluster, s.training, plan);
    const std::string yaml = to_yaml(to_value(plan)), json = printed_json(e);
    for (const std::string& text : {yaml, json}) {
      CAPTURE(text);
      const ParallelPlan again = read_back(s, text);
      CHECK(again == plan);
      CHECK(estimate_of(s.model, s.cluster, s.training, again).iteration == e.iteration);
    }
  }
}

TEST_CASE("a misspelt key is refused with the nearest name") {
  for (const Sample& sample : plan_samples::all) {
    Sample misspelt = sample;
    misspelt.key += "x";
    const std::string fault = fixtures::config_error([&] { plan_samples::with(misspelt); });
    CAPTURE(fault);
    CHECK(fixtures::contains(fault, "'" + misspelt.key + "'"));
    CHECK(fixtures::contains(fault, "did you mean '" + sample.key + "'"));
  }
}

}  // namespace plan_keys_test
