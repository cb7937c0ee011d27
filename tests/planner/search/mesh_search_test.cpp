// Plans whose stages differ: what the search finds on mixed clusters, and what cannot be planned.
#include "planner/search/mesh_search.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "costmodel/config/yaml.hpp"
#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/plan/plan_text.hpp"
#include "planner/report/json_mesh.hpp"
#include "planner/report/json_report.hpp"
#include "planner/report/mesh_report.hpp"
#include "planner/report/strategy_text.hpp"
#include "planner/search/mesh_improve.hpp"
#include "planner/search/strategy.hpp"
#include "tests/costmodel/support/scenarios.hpp"

namespace mesh_search_test {

using costmodel::Estimate;
using costmodel::Evaluator;
using costmodel::ParallelPlan;
using costmodel::Scenario;
using costmodel::StagePlan;
using planner::MeshSearch;
using planner::search_meshes;
using scenarios::mixed;
using scenarios::read;

namespace {

const std::string small =
    "model: {base: gpt2-medium, layers: 8}\n"
    "training: {global_batch: 16, sequence: 1024, precision: fp16, stack: megatron-2021}\n";

int layers_on(const Estimate& e, const std::string& group) {
  int layers = 0;
  for (std::size_t k = 0; k < e.meshes.size(); ++k)
    if (e.meshes[k].name == group) layers += e.plan.stage_layers[k];
  return layers;
}

// Every plan of stages on two groups of two and one devices, recomputation and ZeRO fixed.
double least_of_all(const Scenario& s) {
  Evaluator evaluator(s.model, s.cluster, s.training);
  double best = 1e300;
  const auto layers = static_cast<int>(s.model.layers);
  const std::vector<std::vector<StagePlan>> firsts{{{1, 2, {}, 0, "h100"}},
                                                   {{2, 1, {}, 0, "h100"}},
                                                   {{1, 1, {}, 0, "h100"}, {1, 1, {}, 0, "h100"}}};
  const StagePlan slow{1, 1, {}, 0, "a100"};
  for (const auto& first : firsts) {
    for (const bool quick_first : {true, false}) {
      ParallelPlan plan;
      plan.stages = first;
      plan.stages.insert(quick_first ? plan.stages.end() : plan.stages.begin(), slow);
      plan.pp = static_cast<int>(plan.stages.size());
      plan.sequence_parallel = s.training.stack.offers.sequence_parallel;
      for (int dp = 1; dp <= 2; ++dp) {
        plan.dp = dp;
        for (std::int64_t b = 1; b * dp <= s.training.global_batch; ++b) {
          plan.micro_batch = b;
          if (s.training.global_batch % (b * dp) != 0) continue;
          for (int i = 0; i <= layers; ++i) {
            for (int j = 0; j <= (plan.pp == 3 ? layers - i : 0); ++j) {
              plan.stage_layers = {i, j, layers - i - j};
              if (plan.pp == 2) plan.stage_layers = {i, layers - i};
              if (plan.pp == 3 && j == 0) continue;
              if (!is_valid(plan, s.model, s.cluster, s.training)) continue;
              if (!planner::fits(evaluator.cost(plan), 0)) continue;
              best = std::min(best, evaluator.iteration_time(plan).value);
            }
          }
        }
      }
    }
  }
  return best;
}

}  // namespace

TEST_CASE("an H100 beside an A100 gets the layers that its speed earns") {
  // Compute-bound: of even stages the H100's would wait.
  const std::string model =
      "model: llama-3-8b\n"
      "training: {global_batch: 64, sequence: 4096, precision: bf16, stack: megatron-core-2025}\n";
  const Scenario s = read(model + mixed(8, 8));
  const MeshSearch found = search_meshes(s);
  REQUIRE(!found.plans.empty());
  const Estimate& best = found.plans.front();
  const int quick = layers_on(best, "h100"), slow = layers_on(best, "a100");
  CHECK(quick + slow == 32);
  const auto rate = [&](std::size_t g) {
    const auto& device = s.cluster.groups[g].device;
    return (device.peak_of(costmodel::Precision::bf16) * device.gemm_efficiency).value;
  };
  const double earned = rate(0) / rate(1), given = static_cast<double>(quick) / slow;
  INFO("layers " << quick << " + " << slow);
  CHECK(given > 1.4);
  CHECK(given < 1.5 * earned);  // the A100s have the loss besides
  CHECK(best.fits());
  CHECK(found.lower_bound < best.iteration);
  // What keeps the gap open are pipelines of this search: through both groups, with whole
  // micro-batches.
  CHECK(found.held_by.order.size() == 2);
  CHECK(found.held_by.least_stages >= 2);
  CHECK(found.held_by.least_stages <= found.held_by.most_stages);
  REQUIRE(found.held_by.sequences > 0);
  CHECK(s.training.global_batch % found.held_by.sequences == 0);
  // Against the same plan with its layers dealt out evenly.
  ParallelPlan even = best.plan;
  even.stage_layers.assign(even.stages.size(), 32 / even.pp);
  even.stage_layers.back() += 32 - 32 / even.pp * even.pp;
  Evaluator evaluator(s.model, s.cluster, s.training);
  CHECK(evaluator.iteration_time(even) > 1.1 * best.iteration);
  for (std::size_t i = 1; i < found.plans.size(); ++i)
    CHECK(found.plans[i - 1].iteration <= found.plans[i].iteration);
}

TEST_CASE("no plan of a small space is faster than what the search finds") {
  const std::string two_stacks =
      "model: {kind: t5, encoder_layers: 3, decoder_layers: 5, hidden: 1024, heads: 16, "
      "ffn_hidden: 4096, vocab: 32128}\n"
      "training: {global_batch: 16, sequence: 1024, decoder_sequence: 256, precision: fp16, "
      "stack: megatron-2021}\n";
  for (const std::string* model : {&small, &two_stacks}) {
    for (const std::string join : {"25 GB/s", "2 GB/s", "100 MB/s"}) {
      const Scenario s = read(*model + mixed(2, 1, join) + "plan: {recompute: none, zero: 0}\n");
      const MeshSearch found = search_meshes(s);
      REQUIRE(!found.plans.empty());
      const double least = least_of_all(s);
      INFO(*model << join);
      CHECK(found.plans.front().iteration.value >= least * (1 - 1e-9));
      // Layers are sliced without regard to what a cut sends: behind the encoder both stacks'
      // tokens.
      const double slack = model == &small ? 1.02 : 1.03;
      CHECK(found.plans.front().iteration.value <= least * slack);
    }
  }
}

TEST_CASE("one kind of device: stages of their own sizes are no slower than even ones") {
  const Scenario s = read(small + "cluster: {base: dgx-a100, devices: 8}\n");
  const MeshSearch found = search_meshes(s);
  REQUIRE(!found.plans.empty());
  Scenario even = s;
  even.plan.pp = 1;
  even.plan.tp = 1;
  even.plan.micro_batch = 2;
  Evaluator evaluator(s.model, s.cluster, s.training);
  CHECK(found.plans.front().iteration <= evaluator.iteration_time(resolve_plan(even)) * (1 + 1e-9));
  CHECK(found.plans.front().plan.devices() == 8);
}

TEST_CASE("half the layers recomputed is priced as half in the search over meshes too") {
  const Scenario s = read(
      "model: llama-3-8b\ncluster: {base: dgx-h100, devices: 8}\n"
      "training: {global_batch: 16, sequence: 8192, stack: torchtitan}\n"
      "plan: {recompute: selective, tp: 1}\n");
  const MeshSearch found = search_meshes(s);
  REQUIRE(!found.plans.empty());
  const auto even = planner::run_strategies(s, planner::Reach::even, 1, {}).found;
  REQUIRE(!even.plans.empty());
  CHECK(found.plans.front().iteration <= even.plans.front().iteration * (1 + 1e-9));
}

TEST_CASE("strategy alpa tells stages with sizes of their own beside its layouts") {
  const std::string yaml =
      "model: llama-3-8b\ncluster: {base: pcie-8x-rtx-4090, devices: 8}\n"
      "training: {global_batch: 64, sequence: 2048, precision: bf16, stack: alpa-2022}\n";
  const auto all = planner::run_strategies(read(yaml), planner::Reach::all, 1, {});
  REQUIRE(all.meshes);
  REQUIRE(!all.meshes->plans.empty());
  const auto lines = planner::strategy_sentences(all, {});
  const auto told = std::find_if(lines.begin(), lines.end(), [](const std::string& line) {
    return fixtures::contains(line, "Stages with sizes and recomputation of their own: ");
  });
  REQUIRE(told != lines.end());
  CHECK(fixtures::contains(*told, to_string(all.meshes->plans.front().plan)));
  // Not where the scenario fixes what that search cannot hold fixed, nor for the grid alone.
  CHECK(
      !planner::run_strategies(read(yaml + "plan: {pp: 2}\n"), planner::Reach::all, 1, {}).meshes);
  CHECK(!planner::run_strategies(read(yaml), planner::Reach::even, 1, {}).meshes);
}

TEST_CASE("what is found is placed: every device once, each stage on one kind") {
  const Scenario s = read(small + mixed(8, 4));
  const MeshSearch found = search_meshes(s);
  REQUIRE(!found.plans.empty());
  const auto ranks = planner::placement(found.plans.front().plan, s.cluster);
  REQUIRE(ranks.size() == 12);
  std::set<std::string> places;
  for (const auto& r : ranks) {
    places.insert(r.group + "/" + std::to_string(r.node) + "/" + std::to_string(r.device));
    CHECK(r.group == found.plans.front().meshes[static_cast<std::size_t>(r.stage)].name);
  }
  CHECK(places.size() == 12);
  const auto json = nlohmann::json::parse(planner::placement_text(ranks, "p.json"));
  CHECK(json.size() == 12);
  CHECK(json[0]["rank"] == 0);
  const auto yaml = costmodel::parse_yaml(planner::placement_text(ranks, "p.yaml"), "p.yaml");
  CHECK(yaml.items.size() == 12);
  const auto report = nlohmann::json::parse(planner::mesh_json(found, s, 0));
  CHECK(report["best"] == 0);
  CHECK(report["plans"][0]["plan"]["stages"].size() == found.plans.front().meshes.size());
}

TEST_CASE("JSON tells of all stages only what all have") {
  const Scenario s = read(small + mixed(4, 2));
  Evaluator evaluator(s.model, s.cluster, s.training);
  ParallelPlan plan;
  plan.pp = 2;
  plan.stage_layers = {5, 3};
  plan.sequence_parallel = s.training.stack.offers.sequence_parallel;
  const costmodel::Recompute full{costmodel::Recomputation::full, 0};
  plan.stages = {{2, 2, full, 0, "h100"}, {2, 1, {}, 0, "a100"}};
  plan.dp = 2;
  plan.micro_batch = 1;
  REQUIRE(is_valid(plan, s.model, s.cluster, s.training));
  const auto told =
      nlohmann::json::parse(planner::estimate_json(evaluator.estimate(plan), s))["plan"];
  CHECK(told["tp"] == 2);
  CHECK(told["recompute"].is_null());
  CHECK(told["zero"] == 0);
  CHECK(told["stages"][0]["recompute"] == "full");
  plan.stages = {{4, 1, full, 0, "h100"}, {2, 1, full, 0, "a100"}};
  plan.dp = 1;
  plan.micro_batch = 2;
  REQUIRE(is_valid(plan, s.model, s.cluster, s.training));
  const auto other =
      nlohmann::json::parse(planner::estimate_json(evaluator.estimate(plan), s))["plan"];
  CHECK(other["tp"].is_null());
  CHECK(other["recompute"] == "full");
}

TEST_CASE("what cannot be planned has a reason") {
  const auto reason = [](const std::string& yaml) {
    const MeshSearch found = search_meshes(read(yaml));
    CHECK(found.plans.empty());
    return found.reason;
  };
  // No memory: 70 billion parameters on two devices.
  const std::string large =
      "model: llama-3-70b\n"
      "training: {global_batch: 4, sequence: 4096, precision: bf16, stack: megatron-core-2025}\n";
  CHECK(reason(large + mixed(1, 1)) ==
        "no slicing fits in memory with the micro-batches in flight");
  // More devices than one layer's sizes can use.
  const std::string one_layer =
      "model: {base: gpt2, layers: 1, heads: 12}\n"
      "training: {global_batch: 1, sequence: 1024, precision: fp16, stack: megatron-2021}\n";
  CHECK(reason(one_layer + mixed(8, 7)) == "no stages use up the devices of every group");
  const auto fault = [](const std::string& plan) {
    return fixtures::config_error([&] { search_meshes(read(small + mixed(2, 2) + plan)); });
  };
  CHECK(fixtures::contains(fault("plan: {pp: 2}\n"), "pp is searched where stages differ"));
  CHECK(fixtures::contains(fault("plan: {stages: [{dp: 2}, {dp: 2}]}\n"), "are fixed"));
  CHECK(fixtures::contains(fault("plan: {dp: 2}\n"), "alone does not say"));
  CHECK(fixtures::contains(fault("plan: {rank_order: tp-cp-ep-pp-dp}\n"),
                           "rank_order is the default where stages differ"));
  CHECK(fixtures::contains(fault("search: {schedules: gpipe}\n"), "leaves out 1f1b"));
}

TEST_CASE("a data parallel size that the plan fixes is that of every stage") {
  const std::string yaml = small + mixed(4, 2);
  for (const int dp : {1, 2}) {
    const Scenario s = read(yaml + "plan: {dp: " + std::to_string(dp) + ", micro_batch: 2}\n");
    const MeshSearch found = search_meshes(s);
    CAPTURE(dp);
    REQUIRE(!found.plans.empty());
    for (const Estimate& e : found.plans) {
      CHECK(e.plan.dp == dp);
      CHECK(e.plan.micro_batch == 2);
      for (const StagePlan& stage : e.plan.stages) CHECK(stage.dp == dp);
    }
    REQUIRE(found.replicas);
    for (const auto& share : found.replicas->shares) CHECK(share.plan.dp == dp);
  }
}

TEST_CASE("time that runs out before a plan is found is the reason told") {
  const Scenario s = read(small + mixed(2, 2));
  const std::string told = "time ran out before a plan was found";
  const MeshSearch none = search_meshes(s, 1, [] { return true; });
  CHECK(none.plans.empty());
  CHECK(none.expired);
  CHECK(none.reason == told);
  int asked = 0;  // and where it runs out in the first slicing
  const MeshSearch later = search_meshes(s, 1, [&asked] { return ++asked > 2; });
  CHECK(later.plans.empty());
  CHECK(later.reason == told);
  for (const auto& line : planner::mesh_sentences(none, s))
    CHECK(!fixtures::contains(line, "best plans so far"));
  CHECK(fixtures::contains(planner::mesh_report(none, s, 0, {}), "No plan was found: " + told));
  const auto json = nlohmann::json::parse(planner::mesh_json(none, s, 0));
  CHECK(json["reason"] == told);
  CHECK(json["searched"]["time_ran_out"] == true);
}

TEST_CASE("degenerate clusters still have a plan") {
  // One device of each kind; one device at all; as good as no network between the groups.
  for (const std::string& cluster :
       {mixed(1, 1), std::string("cluster: {base: dgx-a100, devices: 1}\n"),
        mixed(1, 1, "1 MB/s")}) {
    const MeshSearch found = search_meshes(read(small + cluster));
    REQUIRE(!found.plans.empty());
    CHECK(found.plans.front().fits());
    CHECK(std::isfinite(found.plans.front().iteration.value));
  }
}

TEST_CASE("no network between the groups: no pipeline through them, and the reason") {
  Scenario s = read(small + mixed(1, 1));
  s.cluster.tiers.back().bandwidth = costmodel::BytesPerSecond(0);
  const MeshSearch found = search_meshes(s);
  CHECK(found.plans.empty());
  CHECK(found.reason == "what goes from stage to stage takes for ever");
  REQUIRE(found.replicas);
  CHECK(found.replicas->reason == "summing gradients over the groups takes for ever");
}

TEST_CASE("more groups than layers, embedding and loss counted: the reason") {
  const std::string one_layer =
      "model: {base: gpt2, layers: 1, heads: 12}\n"
      "training: {global_batch: 4, sequence: 1024, precision: fp16, stack: megatron-2021}\n";
  std::string groups;
  for (const char* name : {"a", "b", "c", "d"})
    groups += std::string(groups.empty() ? "" : ", ") + "{name: " + name +
              ", base: dgx-a100, devices: 1}";
  const MeshSearch found =
      search_meshes(read(one_layer + "cluster: {groups: [" + groups +
                         "], join: {bandwidth_bytes_per_s: 25 GB/s, latency_s: 5 us}}\n"));
  CHECK(found.plans.empty());
  CHECK(found.reason == "3 layers for 4 groups: every group needs a stage of a layer at least");
}

TEST_CASE("one giant layer: the loss over a million words outweighs the blocks") {
  const std::string giant =
      "model: {base: gpt2-medium, layers: 2, vocab: 1000000}\n"
      "training: {global_batch: 8, sequence: 1024, precision: fp16, stack: megatron-2021}\n";
  const MeshSearch found = search_meshes(read(giant + mixed(4, 2)));
  REQUIRE(!found.plans.empty());
  const Estimate& best = found.plans.front();
  CHECK(best.fits());
  CHECK(best.meshes.back().name == "h100");  // the quicker kind has the loss
}

}  // namespace mesh_search_test
