// Laws of a training iteration, whatever the model, machine, framework and plan: parts add up,
// shares of a peak are at most one, a better machine is no slower, a drawing ends with the
// estimate, what is printed reads back, and the search is not beaten by a plan of its space.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "costmodel/config/yaml.hpp"
#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/plan/plan_text.hpp"
#include "costmodel/scenario/plan_reader.hpp"
#include "costmodel/schedule/timeline.hpp"
#include "planner/report/json_report.hpp"
#include "planner/search/grid_search.hpp"
#include "planner/search/search_space.hpp"
#include "tests/costmodel/support/scenarios.hpp"
#include "tests/laws/law_draws.hpp"
#include "tests/planner/support/random_scenario.hpp"

namespace training_laws_test {

using namespace costmodel;
using Broken = std::optional<std::string>;

namespace {

bool equal(double a, double b) { return fixtures::relative_error(a, b) <= 1e-9; }

Broken unequal(const char* law, double a, double b) {
  if (equal(a, b)) return {};
  return fmt::format("{}: {:.12g} and {:.12g}", law, a, b);
}

Broken first_of(std::initializer_list<Broken> all) {
  for (const Broken& one : all)
    if (one) return one;
  return {};
}

Broken broken_memory(const Estimate& e) {
  double most = 0;
  for (const StageMemory& m : e.memory) {
    for (const Bytes part : {m.weights, m.gradients, m.optimizer, m.activations, m.buffers})
      if (!(part.value >= 0)) return fmt::format("a part of memory is {:g} bytes", part.value);
    most = std::max(most, m.total().value);
  }
  if (e.memory.empty()) return {};
  return unequal("the peak is that of the fullest stage", most, e.peak.value);
}

Broken broken_shares(const Estimate& e) {
  if (!(e.hfu > 0 && e.hfu <= 1)) return fmt::format("HFU is {:g}", e.hfu);
  if (!(e.causal_mfu > 0 && e.causal_mfu <= 1)) return fmt::format("causal MFU {:g}", e.causal_mfu);
  if (e.causal_mfu > e.mfu * (1 + 1e-9)) return "causal MFU is above MFU";
  return {};
}

Broken broken_interval(const Estimate& e) {
  const bool inside =
      e.interval.low.value > 0 && e.interval.low <= e.iteration && e.iteration <= e.interval.high;
  if (inside) return {};
  return fmt::format("{:g} s is not within {:g} to {:g}", e.iteration.value, e.interval.low.value,
                     e.interval.high.value);
}

// What can be made better of a machine, each alone.
const std::vector<std::pair<const char*, void (*)(ClusterSpec&)>> improvements{
    {"networks twice as fast",
     [](ClusterSpec& c) {
       for (Tier& tier : c.tiers) tier.bandwidth = tier.bandwidth * 2;
     }},
    {"networks without latency",
     [](ClusterSpec& c) {
       for (Tier& tier : c.tiers) tier.latency = Seconds(0);
     }},
    {"memory twice as fast",
     [](ClusterSpec& c) { c.device.memory_bandwidth = c.device.memory_bandwidth * 2; }},
};

// An order that is made for given times may be a worse one for shorter times (Graham 1969, Bounds
// on Multiprocessing Timing Anomalies): by at most so much where the backward is split.
constexpr double order_made_for_times = 0.05;

Broken broken_improvement(const Scenario& s, const ParallelPlan& plan, const Estimate& e) {
  const double allowed = row_of(plan.schedule).splits_backward ? order_made_for_times : 1e-9;
  for (const auto& [name, improve] : improvements) {
    ClusterSpec better = s.cluster;
    improve(better);
    const Seconds time = Evaluator(s.model, better, s.training).iteration_time(plan);
    if (time.value > e.iteration.value * (1 + allowed)) {
      return fmt::format("{}: {:.9g} s for {:.9g} s", name, time.value, e.iteration.value);
    }
  }
  return {};
}

Broken broken_reading(const Scenario& s, const ParallelPlan& plan, Evaluator& evaluator,
                      const Estimate& e) {
  Scenario again = s;
  again.plan = read_plan(parse_yaml(to_yaml(plan_map(plan, s)), "plan.yaml"));
  const ParallelPlan read = resolve_plan(again);
  return unequal("the plan that is printed reads back", e.iteration.value,
                 evaluator.iteration_time(read).value);
}

Broken broken_drawing(Evaluator& evaluator, const ParallelPlan& plan, const Estimate& e) {
  if (evaluator.simulated_actions(plan) > 20'000) return {};
  if (evaluator.timeline_alone(plan).apart) return {};  // a rank's span counts, not the drawing's
  return unequal("simulate ends when evaluate does", evaluator.timeline(plan).end().value,
                 e.iteration.value);
}

// The sum of all numbers of a map.
double sum_of(const nlohmann::json& map) {
  double sum = 0;
  for (const auto& [key, value] : map.items()) sum += value.is_number() ? value.get<double>() : 0;
  return sum;
}

Broken broken_print(const Scenario& s, const Estimate& e) {
  const auto json = nlohmann::json::parse(planner::estimate_json(e, s));
  return first_of({
      unequal("JSON has the estimate's time", json["time"]["iteration_s"].get<double>(),
              e.iteration.value),
      unequal("JSON has the estimate's memory", json["memory"]["peak_bytes"].get<double>(),
              e.peak.value),
      unequal("parts in JSON add up", sum_of(json["time"]["breakdown"]), e.iteration.value),
  });
}

// Of one plan of a scenario.
Broken broken_law(const Scenario& s, const ParallelPlan& plan, Evaluator& evaluator) {
  const Estimate e = evaluator.estimate(plan);
  const Broken broken = first_of({
      unequal("the parts of an iteration are all of it", e.breakdown.total().value,
              e.iteration.value),
      broken_memory(e),
      broken_shares(e),
      broken_interval(e),
      broken_improvement(s, plan, e),
      broken_reading(s, plan, evaluator, e),
      broken_drawing(evaluator, plan, e),
      broken_print(s, e),
  });
  if (!broken) return {};
  return *broken + " (" + to_string(plan) + ")";
}

// Some plans of the scenario's space, the same for one scenario always.
std::vector<ParallelPlan> samples(const Scenario& s, const planner::SearchSpace& space) {
  constexpr std::size_t most = 3;
  std::vector<ParallelPlan> plans;
  for (std::size_t i = 0; i < most && i < space.families.size(); ++i) {
    const std::size_t at = (i * 7919 + space.configurations) % space.families.size();
    const auto members = planner::members(space.families[at], s);
    if (!members.empty()) plans.push_back(members[space.configurations % members.size()]);
  }
  return plans;
}

Broken broken_search(const Scenario& s, const std::vector<ParallelPlan>& plans,
                     Evaluator& evaluator) {
  const auto found = planner::search(s, evaluator);
  const double usable = s.cluster.device.memory.value * (1 - s.search.memory_margin);
  for (const ParallelPlan& plan : plans) {
    const Estimate e = evaluator.estimate(plan);
    if (e.peak.value > usable) continue;
    if (found.plans.empty()) return "nothing fits, and " + to_string(plan) + " does";
    const double best = found.plans.front().iteration.value;
    if (best > e.iteration.value * (1 + 1e-9)) {
      return fmt::format("plan takes {:.9g} s, and {} {:.9g}", best, to_string(plan),
                         e.iteration.value);
    }
  }
  return {};
}

Broken broken_training_law(const std::string& yaml) {
  const Scenario s = scenarios::read(yaml);
  const planner::SearchSpace space = planner::enumerate(s);
  Evaluator evaluator(s.model, s.cluster, s.training);
  const auto plans = samples(s, space);
  for (const ParallelPlan& plan : plans)
    if (Broken broken = broken_law(s, plan, evaluator)) return broken;
  return space.configurations <= 200 ? broken_search(s, plans, evaluator) : Broken();
}

}  // namespace

TEST_CASE("laws of training, of scenarios of every kind") {
  laws::hold(
      2000, 90,
      [](std::uint64_t seed) {
        random_scenario::Draw draw(static_cast<std::uint32_t>(seed));
        return random_scenario::draw_scenario(draw).yaml();
      },
      broken_training_law);
}

TEST_CASE("scenarios that broke a law of training") {
  for (const char* yaml : {
           // The host's lead and the exchange of experts hid the same time of the device.
           "model: {kind: moe, hidden: 1536, vocab: 1000, layers: 2, experts: 8, top_k: 1, "
           "expert_ffn_hidden: 4096, heads: 6}\n"
           "cluster: {base: dgx-h100, devices: 16}\n"
           "training: {global_batch: 64, sequence: 8192, stack: {base: torchtitan}}\n"
           "plan: {expert_overlap: true, pp: 1}\n",
           // Clocks raised in the bubble shortened what a collective is hidden beside.
           "model: {kind: gpt, hidden: 256, vocab: 1000, layers: 6, heads: 4}\n"
           "cluster: {base: dgx-h100, devices: 16}\n"
           "training: {global_batch: 48, sequence: 2048, precision: fp8, stack: nanotron, "
           "overlap: {async_tp: true}}\n",
           // The host gains its lead while the device waits for a gather, too.
           "model: {kind: llama, hidden: 4096, vocab: 1000, layers: 3, heads: 16, "
           "ffn_hidden: 8192}\n"
           "cluster: {base: aws-p5, devices: 12}\n"
           "training: {global_batch: 48, sequence: 2048, stack: torchtitan}\n"
           "plan: {zero: 3, recompute: full}\n",
           // ... and for the last sums of gradients.
           "model: {kind: mamba, hidden: 1024, layers: 2, ssm_groups: 4}\n"
           "cluster: {base: selene, devices: 12}\n"
           "training: {global_batch: 6, sequence: 1024, stack: {base: torchtitan}}\n"
           "plan: {pp: 1}\n",
           // ... and for what is gathered during the first forward.
           "model: {kind: gpt, hidden: 256, vocab: 128256, layers: 10, heads: 4, "
           "tie_embeddings: false}\n"
           "cluster: {base: pcie-8x-a100}\n"
           "training: {global_batch: 16, sequence: 2048, stack: {base: torchtitan}, "
           "overlap: {cuda_graph: [attn]}}\n"
           "plan: {pp: 1}\nsearch: {zero: [2]}\n",
           // The host's lead in a recomputation was that of a backward whose clocks then rose.
           "model: {kind: moe, hidden: 512, vocab: 1000, layers: 8, experts: 16, top_k: 4, "
           "expert_ffn_hidden: 4096, heads: 8}\n"
           "cluster: {base: dgx-h100, devices: 8}\n"
           "training: {global_batch: 8, sequence: 1024, precision: fp8, stack: megatron-bridge}\n"
           "plan: {zero: 0}\nsearch: {max_ep: 2, max_vpp: 1}\n",
           // A weight gradient no longer fitted into the wait for a faster network.
           "model: {kind: moe, hidden: 768, vocab: 128256, layers: 2, experts: 8, top_k: 2, "
           "heads: 12, kv_lora_rank: 128, ffn_hidden: 1536}\n"
           "cluster: {base: dlperf-v100, devices: 16}\n"
           "training: {global_batch: 12, sequence: 1024, precision: fp32, stack: "
           "zero-bubble-fork}\n"
           "plan: {etp: 1}\nsearch: {schedules: [zero-bubble-h1, zero-bubble-v]}\n",
       }) {
    CAPTURE(yaml);
    CHECK(broken_training_law(yaml).value_or("") == "");
  }
}

TEST_CASE("a broken law is found, and its scenario made small") {
  const auto judge = [](const std::string& yaml) -> Broken {
    const Value root = parse_yaml(yaml, "s.yaml");
    const Value* plan = root.find("plan");
    if (plan == nullptr || plan->find("tp") == nullptr) return {};
    return "tp is there";
  };
  CHECK(laws::shrunk("model: {a: 1, b: 2}\nplan: {tp: 2, pp: 4}\nsearch: {top: 1}\n", judge) ==
        "plan:\n  tp: 2\n");
}

}  // namespace training_laws_test
