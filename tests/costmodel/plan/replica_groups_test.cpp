// Groups of devices that hold replicas of unequal shares, as a plan: read, written, refused,
// priced.
#include "costmodel/plan/replica_groups.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "costmodel/config/yaml.hpp"
#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/estimate/replica_cost.hpp"
#include "costmodel/plan/pipeline.hpp"
#include "costmodel/plan/plan_keys.hpp"
#include "costmodel/plan/plan_text.hpp"
#include "costmodel/scenario/plan_reader.hpp"
#include "costmodel/scenario/scenario.hpp"
#include "tests/costmodel/support/fixtures.hpp"

namespace replica_groups_test {

namespace replica_plan_test {

using namespace costmodel;

namespace {

// Four H100s and two A100s train 24 sequences.
const std::string header =
    "model: {base: gpt2-medium, layers: 8}\n"
    "training: {global_batch: 24, sequence: 1024, precision: fp16, stack: megatron-core-2025}\n"
    "cluster:\n"
    "  groups: [{name: h100, base: dgx-h100, devices: 4}, {name: a100, base: dgx-a100, devices: "
    "2}]\n"
    "  join: {bandwidth_bytes_per_s: 25 GB/s, latency_s: 5 us}\n";

Scenario read(const std::string& plan, const std::string& top = header) {
  return read_scenario(parse_yaml(top + "plan:\n" + plan, "t.yaml"), "t", fixtures::configs());
}

std::string replicas(const std::string& h100, const std::string& a100) {
  return "  replicas:\n  - {group: h100, " + h100 + "}\n  - {group: a100, " + a100 + "}\n";
}

// 4 x 1 x 4 and 1 x 2 x 4 sequences.
const std::string valid =
    replicas("pp: 1, dp: 4, micro_batch: 1, micro_batches: 4, zero: 1",
             "pp: 2, dp: 1, micro_batch: 2, micro_batches: 4, zero: 0, recompute: full");

std::string fault(const std::string& plan, const std::string& top = header) {
  return fixtures::config_error([&] { resolve_plan(read(plan, top)); });
}

void check_says(const std::string& text, const std::string& part) {
  INFO(text);
  CHECK(fixtures::contains(text, part));
}

Evaluator evaluator_of(const Scenario& s) { return Evaluator(s.model, s.cluster, s.training); }

}  // namespace

TEST_CASE("replicas are read group by group; what they leave out is the plan's") {
  const Scenario s = read(
      "  tp: 2\n  micro_batch: 3\n  zero: 1\n"
      "  replicas:\n"
      "  - {group: a100, micro_batches: 2, recompute: full}\n"
      "  - {group: h100, tp: 1, pp: 2, micro_batches: 3, zero: 0}\n");
  const ParallelPlan plan = resolve_plan(s);
  REQUIRE(plan.replica_groups.size() == 2);
  const ReplicaGroup h100{"h100", 1, 2, 2, 3, 3, {}, 0};
  const ReplicaGroup a100{"a100", 2, 1, 1, 3, 2, {Recomputation::full, 0}, 1};
  CHECK(plan.replica_groups[0] == h100);  // in the order of the cluster's
  CHECK(plan.replica_groups[1] == a100);
  CHECK(plan.devices() == 6);
  CHECK(plan.pp == 3);
  CHECK(plan.dp == 3);
  CHECK(to_string(plan) ==
        "h100: t 1 · p 2 · d 2 · b 3 · m 3 · recompute none · ZeRO 0; "
        "a100: t 2 · p 1 · d 1 · b 3 · m 2 · recompute full · ZeRO 1 · 1f1b" +
            std::string(plan.sequence_parallel ? " · sequence parallel" : ""));
  const auto parts = pipelines_of(plan, 24);
  REQUIRE(parts.size() == 2);
  CHECK(parts[1].first_sequence == 18);
  CHECK(parts[1].first_rank == 4);
  CHECK(parts[1].first_stage == 2);
  CHECK(parts[0].sequences() + parts[1].sequences() == 24);
  CHECK(!parts[0].plan.sequence_parallel);
  CHECK(&pipeline_of_rank(parts, 3) == parts.data());
  CHECK(&pipeline_of_rank(parts, 4) == parts.data() + 1);
  CHECK(&pipeline_of_stage(parts, 1) == parts.data());
  CHECK(&pipeline_of_stage(parts, 2) == parts.data() + 1);
}

TEST_CASE("what is written of replicas is read as the same plan") {
  for (const std::string& text :
       {valid, replicas("tp: 2, micro_batches: 8", "tp: 2, micro_batches: 8") +
                   "  sequence_parallel: true\n  schedule: gpipe\n"}) {
    const Scenario s = read(text);
    const ParallelPlan plan = resolve_plan(s);
    Value root = parse_yaml(header, "t.yaml");
    root.set("plan", to_value(plan));
    const std::string written = to_yaml(root);
    CAPTURE(written);
    CHECK(resolve_plan(read_scenario(parse_yaml(written, "t.yaml"), "t", fixtures::configs())) ==
          plan);
  }
}

TEST_CASE("an iteration is that of the groups' evaluator, to the bit; memory is each group's own") {
  const Scenario s = read(valid);
  const ParallelPlan plan = resolve_plan(s);
  const auto parts = pipelines_of(plan, 24);
  ReplicaEvaluator groups(s.model, s.cluster, s.training);
  Evaluator evaluator = evaluator_of(s);
  const Estimate e = evaluator.estimate(plan);
  CHECK(e.iteration == groups.iteration({{parts[0].plan, parts[0].micro_batches},
                                         {parts[1].plan, parts[1].micro_batches}}));
  REQUIRE(e.memory.size() == 3);
  double flops = e.model_flops.value, used = 0;
  for (std::size_t g = 0; g < parts.size(); ++g) {
    TrainingSpec own = s.training;
    own.global_batch = parts[g].sequences();
    Evaluator alone(s.model, s.cluster.groups[g], own);
    const Estimate one = alone.estimate(parts[g].plan);
    for (std::size_t k = 0; k < one.memory.size(); ++k) {
      const std::size_t at = static_cast<std::size_t>(parts[g].first_stage) + k;
      CHECK(e.memory[at].total() == one.memory[k].total());
      CHECK(e.stage_forward[at] == one.stage_forward[k]);
      CHECK(e.stage_backward[at] == one.stage_backward[k]);
      CHECK(e.stage_capacity[at] == one.capacity);
      CHECK(e.meshes[at].name == s.cluster.groups[g].name);
      // Beside what it sends in its own group: of two groups, its share of the gradients once.
      const double share = alone.cost(parts[g].plan).ranks[k].weights.all / parts[g].plan.dp;
      CHECK(e.rank_traffic[at].all_reduce.value ==
            doctest::Approx(one.rank_traffic[k].all_reduce.value +
                            share * gradient_bytes_per_parameter(s.training))
                .epsilon(1e-12));
      CHECK(e.rank_traffic[at].send == one.rank_traffic[k].send);
    }
    used = std::max(used, one.peak / one.capacity);
    flops += one.hardware_flops.value - one.model_flops.value;
  }
  CHECK(e.peak / e.capacity == used);
  CHECK(e.hardware_flops.value == doctest::Approx(flops).epsilon(1e-12));
  CHECK(e.hardware_flops > e.model_flops);
  CHECK(e.breakdown.total().value == doctest::Approx(e.iteration.value).epsilon(1e-12));
  CHECK(e.breakdown.dp_comm >= groups.across());
  CHECK(e.breakdown.other >= Seconds(0));
  CHECK(evaluator.timeline(plan).end().value == doctest::Approx(e.iteration.value).epsilon(1e-12));
}

TEST_CASE("the groups' timeline meets before the sum over them and steps after it") {
  const Scenario s = read(valid);
  const ParallelPlan plan = resolve_plan(s);
  Evaluator evaluator = evaluator_of(s);
  const Timeline timeline = evaluator.timeline(plan);
  CHECK(timeline.ranks == 3);
  Seconds summed, met;
  for (const Event& event : timeline.events) {
    if (event.name == "gradient sum over groups") {
      met = event.start;
      summed = event.end;
    }
  }
  CHECK(summed > met);
  int steps = 0, computed = 0;
  for (const Event& event : timeline.events) {
    if (event.stream == Stream::compute) CHECK(event.end <= met);
    computed += event.stream == Stream::compute ? 1 : 0;
    if (event.name != "optimizer step") continue;
    CHECK(event.start == summed);
    ++steps;
  }
  CHECK(steps == 3);
  CHECK(computed == 2 * (4 + 2 * 4));  // of one replica each: m micro-batches on every stage
}

TEST_CASE("one group's replicas are a plain plan") {
  const std::string one =
      "model: {base: gpt2-medium, layers: 8}\n"
      "training: {global_batch: 24, sequence: 1024, precision: fp16, stack: megatron-core-2025}\n"
      "cluster:\n  groups: [{name: h100, base: dgx-h100, devices: 4}]\n"
      "  join: {bandwidth_bytes_per_s: 25 GB/s, latency_s: 5 us}\n";
  const Scenario s = read("  replicas: [{group: h100, pp: 2, micro_batches: 12, zero: 0}]\n", one);
  const ParallelPlan plan = resolve_plan(s);
  Evaluator plain(s.model, s.cluster.groups.front(), s.training), evaluator = evaluator_of(s);
  const Estimate a = evaluator.estimate(plan),
                 b = plain.estimate(pipelines_of(plan, 24).front().plan);
  CHECK(a.iteration == b.iteration);
  CHECK(a.peak == b.peak);
  CHECK(a.traffic.total() == b.traffic.total());
}

TEST_CASE("replicas that are no list of groups are named where they stand") {
  check_says(fault("  replicas: 4\n"), "t.yaml:7:13: replicas is not a list of groups of replicas");
  check_says(fault("  replicas: [{micro_batches: 2}]\n"), "lacks the key 'group'");
  check_says(fault("  replicas: [{group: h100}]\n"), "lacks the key 'micro_batches'");
  check_says(fault("  replicas: [{group: h100, micro_batches: 2, recomputes: full}]\n"),
             "t.yaml:7:46: group of replicas has no key 'recomputes'; did you mean 'recompute'?");
  check_says(fault(valid + "  stage_layers: [4, 4]\n"),
             "t.yaml:10:17: stage_layers beside replicas; leave one of them out");
  check_says(fault(valid + "  stages: [{tp: 1, dp: 1}]\n"), "stages beside replicas");
  check_says(fault(valid + "  zero: auto\n"),
             "t.yaml:10:9: zero: auto beside replicas; give it a value, or leave replicas out");
}

TEST_CASE("replicas that do not make up the cluster or the batch are refused, with a remedy") {
  check_says(fault("  replicas: [{group: h100, micro_batches: 6}]\n"),
             "t.yaml:7:13: group 'a100' of the cluster holds no replicas; give one entry for each "
             "of h100, a100");
  check_says(fault(replicas("micro_batches: 4", "micro_batches: 4") +
                   "  - {group: a100, micro_batches: 4}\n"),
             "group 'a100' of the cluster is listed more than once");
  check_says(fault("  replicas: [{group: b200, micro_batches: 6}]\n"),
             "the cluster has no group 'b200'; choose among h100, a100");
  check_says(fault(replicas("dp: 3, micro_batches: 4", "micro_batches: 4")),
             "group 'h100': tp 1 x pp 1 x dp 3 = 3 devices, but it has 4; set dp to 4");
  check_says(fault(replicas("tp: 3, micro_batches: 4", "micro_batches: 4")),
             "group 'h100': tp 3 x pp 1 x dp 1 = 3 devices, but it has 4; choose tp x pp among");
  check_says(fault(replicas("micro_batches: 4", "micro_batches: 3")),
             "dp x micro_batch x micro_batches of the groups add up to 4 x 1 x 4 + 2 x 1 x 3 = 22, "
             "and global_batch is 24; give the groups other micro_batches");
  check_says(fault(replicas("micro_batches: 4",
                            "pp: 2, zero: 3, micro_batch: 2, "
                            "micro_batches: 4") +
                   "  vpp: 2\n"),
             "replicas of unequal shares have one chunk a rank");
  check_says(fault(valid + "  schedule: zero-bubble-h1\n"), "backwards that are not split");
  check_says(fault(valid + "  rank_order: tp-dp-cp-ep-pp\n"), "leave rank_order out");
  check_says(fault(replicas("tp: 4, micro_batches: 20",
                            "tp: 2, micro_batches: 4, recompute: {granularity: full, layers: 99}")),
             "group 'a100': recompute layers 99 exceed the model's 8");
  check_says(fault("  replicas: [{group: h100, micro_batches: 6}]\n",
                   "model: gpt2\ntraining: {global_batch: 24, sequence: 1024, precision: fp16}\n"
                   "cluster: {base: dgx-h100, devices: 4}\n"),
             "the cluster has no groups whose replicas could differ; leave replicas out, or give "
             "cluster.groups");
}

}  // namespace replica_plan_test

}  // namespace replica_groups_test
