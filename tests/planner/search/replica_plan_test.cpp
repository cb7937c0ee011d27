// Replicas of unequal shares as a plan: ranked, written, evaluated, placed, explained, refused.
#include "planner/search/replica_plan.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "costmodel/config/yaml.hpp"
#include "costmodel/estimate/plan_estimate.hpp"
#include "planner/report/mesh_report.hpp"
#include "tests/costmodel/support/fixtures.hpp"
#include "tests/run_program.hpp"

namespace replica_plan_test {

namespace replica_plan_cli_test {

using costmodel::Estimate;
using costmodel::Scenario;
using nlohmann::json;
using planner::MeshSearch;
using program::run;
using program::Scratch;
using program::words_of;

namespace {

std::string mixed(int batch, const std::string& join) {
  return "model: {base: gpt2-medium, layers: 8}\n"
         "training: {global_batch: " +
         std::to_string(batch) +
         ", sequence: 1024, precision: fp16, stack: megatron-2021}\n"
         "cluster: {groups: [{name: h100, base: dgx-h100, devices: 4}, {name: a100, base: "
         "dgx-a100, devices: 4}], join: {bandwidth_bytes_per_s: " +
         join + ", latency_s: 5 us}}\n";
}

Scenario read(const std::string& yaml) {
  return costmodel::read_scenario(costmodel::parse_yaml(yaml, "t.yaml"), "t", fixtures::configs());
}

MeshSearch ranked(const Scenario& s) {
  MeshSearch found = planner::search_meshes(s);
  rank_replicas(found, s);
  if (!found.plans.empty()) CHECK(found.lower_bound <= found.plans.front().iteration);
  return found;
}

bool is_replicated(const Estimate& e) { return !e.plan.replica_groups.empty(); }

json answer(const std::string& command, const Scratch& scratch) {
  const auto done = run(words_of(command + " --format json"), scratch);
  CAPTURE(command);
  CAPTURE(done.err);
  REQUIRE(done.status == 0);
  return json::parse(done.out);
}

}  // namespace

TEST_CASE("the plan that the shares make takes the time and memory that their search told") {
  for (const int batch : {7, 64, 96}) {
    CAPTURE(batch);
    const Scenario s = read(mixed(batch, "25 GB/s"));
    const planner::ReplicaSearch found = planner::search_replicas(s);
    REQUIRE(!found.shares.empty());
    const auto plan = replica_plan(found, s);
    CHECK(violations(plan, s.model, s.cluster, s.training).empty());
    const Estimate e = estimate_of(s.model, s.cluster, s.training, plan);
    CHECK(e.iteration == found.iteration);
    CHECK(e.peak / e.capacity == *std::max_element(found.used.begin(), found.used.end()));
  }
}

TEST_CASE("replicas stand among the plans where their time puts them") {
  const Scenario quick = read(mixed(64, "25 GB/s")), slow = read(mixed(64, "20 MB/s"));
  const MeshSearch first = ranked(quick), later = ranked(slow);
  CHECK(is_replicated(first.plans.front()));
  CHECK(!is_replicated(later.plans.front()));
  for (const MeshSearch& found : {first, later}) {
    CHECK(std::count_if(found.plans.begin(), found.plans.end(), is_replicated) == 1);
    for (std::size_t i = 1; i < found.plans.size(); ++i)
      CHECK(found.plans[i - 1].iteration <= found.plans[i].iteration);
  }
  CHECK(best_pipeline(first) == first.plans[1].iteration);
  CHECK(best_pipeline(later) == later.plans[0].iteration);
  const std::string text = planner::mesh_report(first, quick, 0, {});
  CHECK(fixtures::contains(text, "replicas 1 x 1 x 4 x "));
  CHECK(fixtures::contains(text, " % faster than the best pipeline through all groups"));
}

TEST_CASE("found replicas are written and evaluated as they are, and not searched where fixed") {
  const Scratch scratch;
  scratch.write("s.yaml", mixed(64, "25 GB/s"));
  REQUIRE(run(words_of("plan s.yaml --format yaml --out found.yaml"), scratch).status == 0);
  const json best = answer("plan s.yaml", scratch)["plans"][0];
  const json again = answer("evaluate found.yaml", scratch);
  REQUIRE(best["plan"]["replicas"].size() == 2);
  CHECK(again["plan"] == best["plan"]);
  CHECK(again["time"] == best["time"]);
  CHECK(again["memory"] == best["memory"]);
  CHECK(again["communication"] == best["communication"]);
  const json& groups = again["plan"]["replicas"];
  CHECK(again["plan"]["micro_batches"].is_null() ==
        (groups[0]["micro_batches"] != groups[1]["micro_batches"]));
  CHECK(again["plan"]["tp"].is_null() == (groups[0]["tp"] != groups[1]["tp"]));
  CHECK(run(words_of("evaluate found.yaml --format yaml"), scratch).out ==
        scratch.read("found.yaml"));
  CHECK(run(words_of("simulate found.yaml"), scratch).status == 0);
  const auto searched = run(words_of("plan found.yaml"), scratch);
  CHECK(searched.status == 2);
  CHECK(fixtures::contains(searched.err, "replicas are fixed, and plan searches them"));
}

TEST_CASE("found replicas are placed group by group") {
  const Scratch scratch;
  scratch.write("s.yaml", mixed(64, "25 GB/s"));
  REQUIRE(
      run(words_of("plan s.yaml --format yaml --out found.yaml --placement ranks.json"), scratch)
          .status == 0);
  answer("evaluate found.yaml --placement again.json", scratch);
  CHECK(scratch.read("ranks.json") == scratch.read("again.json"));
  const json ranks = json::parse(scratch.read("ranks.json"));
  REQUIRE(ranks.size() == 8);
  CHECK(ranks[3]["group"] == "h100");
  CHECK(ranks[4] == json{{"rank", 4},
                         {"stage", 0},
                         {"tp", 0},
                         {"cp", 0},
                         {"dp", 0},
                         {"group", "a100"},
                         {"node", 0},
                         {"device", 0}});
}

TEST_CASE("replicas are explained group by group, and not exported") {
  const Scratch scratch;
  scratch.write("s.yaml", mixed(64, "25 GB/s") +
                              "plan: {replicas: [{group: h100, micro_batches: 11}, {group: a100, "
                              "micro_batches: 5}]}\n");
  const auto explained = run(words_of("explain s.yaml"), scratch);
  CHECK(explained.status == 0);
  CHECK(fixtures::contains(explained.out, "a ring over the groups: 2 steps"));
  double sequences = 0;
  bool stages = false;
  for (const json& row : answer("explain s.yaml", scratch)) {
    stages = stages || row["group"] == "a100: pipeline";
    if (row["group"] != "groups" || row["symbol"] != "B") continue;
    const json& value = row["value"];
    sequences += value.is_string() ? std::stod(value.get<std::string>()) : value.get<double>();
  }
  CHECK(sequences == 64);
  CHECK(stages);
  const auto exported = run(words_of("export s.yaml --to megatron"), scratch);
  CHECK(exported.status == 2);
  CHECK(fixtures::contains(exported.err,
                           "s.yaml:4:18: Megatron-LM's replicas are all cut alike and take as many "
                           "micro-batches each; leave plan.replicas out"));
}

}  // namespace replica_plan_cli_test

}  // namespace replica_plan_test
