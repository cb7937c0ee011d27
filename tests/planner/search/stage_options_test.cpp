// The ways to run a stage on submeshes, held against the cost model's price of whole plans.
#include "planner/search/stage_options.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "costmodel/estimate/evaluator.hpp"
#include "tests/costmodel/support/scenarios.hpp"

namespace stage_options_test {

using costmodel::Evaluator;
using costmodel::ParallelPlan;
using costmodel::Scenario;
using scenarios::read;

namespace {

// The option of one device for these layers takes as long as the second stage of the plan.
void check_second_stage(const planner::SlicingProblem& problem, int first, int end,
                        const costmodel::PlanCost& cost) {
  const auto m = static_cast<double>(cost.micro_batches);
  const auto after = cost.ranks[1].after.gradient_exposed + cost.ranks[1].after.optimizer +
                     cost.ranks[1].after.gather_exposed;
  const auto time = cost.times.forward[1] + cost.times.backward[1] + after / m;
  const auto& list =
      problem.options[static_cast<std::size_t>(problem.range_class[problem.at(first, end)])];
  const auto one = std::find_if(list.begin(), list.end(),
                                [](const planner::StageOption& o) { return o.devices == 1; });
  REQUIRE(one != list.end());
  CHECK(one->seconds == doctest::Approx(time.value).epsilon(1e-6));
}

}  // namespace

TEST_CASE("stages that recompute their first layers are priced by what those are") {
  // Dense layers in front of mixtures of experts: which layers are first depends on the range. In
  // graphs, as clocks that rise with idling do not help a layer whose pace the host sets.
  const Scenario s = read(
      "model: {kind: moe, layers: 6, hidden: 1024, heads: 16, ffn_hidden: 4096, vocab: 32000, "
      "experts: 8, top_k: 2, expert_ffn_hidden: 1024, first_dense_layers: 2}\n"
      "cluster: {base: dgx-h100, devices: 4}\n"
      "training: {global_batch: 16, sequence: 2048, stack: megatron-core-2025, overlap: "
      "{cuda_graph: true}}\n"
      "plan: {tp: 1, recompute: {granularity: full, layers: 2}, zero: 0}\n");
  std::vector<planner::StageChoice> choices;
  const auto problem = *planner::StageOptions(s, 0, {1, false}, choices).problem();
  Evaluator evaluator(s.model, s.cluster, s.training);
  ParallelPlan plan;
  plan.pp = 4;
  plan.recompute = *s.plan.recompute;
  // The second stage of each: layers first .. end - 1 of the problem, whose layer 0 is embedding.
  for (const auto& [first, end, layers] :
       {std::tuple{2, 5, std::vector{1, 3, 1, 1}}, std::tuple{3, 6, std::vector{2, 3, 1, 0}},
        std::tuple{2, 4, std::vector{1, 2, 2, 1}}}) {
    plan.stage_layers = layers;
    check_second_stage(problem, first, end, evaluator.cost(plan));
  }
}

TEST_CASE(
    "stages of an encoder-decoder model are priced by their own layers, wherever they stand") {
  const Scenario s = read(
      "model: {kind: t5, encoder_layers: 4, decoder_layers: 3, hidden: 1024, heads: 16, "
      "ffn_hidden: 4096, vocab: 32128}\n"
      "cluster: {base: dgx-h100, devices: 4}\n"
      "training: {global_batch: 16, sequence: 2048, decoder_sequence: 512, "
      "stack: megatron-core-2025, overlap: {cuda_graph: true}}\n"
      "plan: {tp: 1, recompute: none, zero: 0}\n");
  std::vector<planner::StageChoice> choices;
  const auto problem = *planner::StageOptions(s, 0, {1, false}, choices).problem();
  Evaluator evaluator(s.model, s.cluster, s.training);
  ParallelPlan plan;
  plan.pp = 4;
  // The second stage: encoder alone, both, where the decoder starts, within the decoder.
  for (const auto& [first, end, layers] :
       {std::tuple{2, 4, std::vector{1, 2, 3, 1}}, std::tuple{3, 6, std::vector{2, 3, 1, 1}},
        std::tuple{5, 7, std::vector{4, 2, 1, 0}}, std::tuple{6, 7, std::vector{5, 1, 1, 0}}}) {
    plan.stage_layers = layers;
    check_second_stage(problem, first, end, evaluator.cost(plan));
  }
}

TEST_CASE("a front stage needs room for what is in flight there, not for all micro-batches") {
  Scenario s = read(
      "model: {base: gpt2-medium, layers: 8}\ncluster: {base: dgx-a100, devices: 2}\n"
      "training: {global_batch: 3, sequence: 1024, precision: fp16, stack: megatron-2021}\n"
      "plan: {recompute: none, zero: 0}\n");
  Evaluator evaluator(s.model, s.cluster, s.training);
  ParallelPlan plan;
  plan.pp = 2;
  plan.stage_layers = {4, 4};
  const auto held = evaluator.cost(plan).ranks[0].memory;
  REQUIRE(held.in_flight_micro_batches == 2);
  for (const auto& [room, most] : {std::pair{1.001, 2}, std::pair{0.999, 1}}) {
    s.cluster.device.memory = held.total() * room;
    s.search.memory_margin = 0;
    std::vector<planner::StageChoice> choices;
    const auto problem = *planner::StageOptions(s, 0, {1, false}, choices).problem();
    const auto& list =
        problem.options[static_cast<std::size_t>(problem.range_class[problem.at(0, 5)])];
    REQUIRE(!list.empty());
    CHECK(list.front().devices == 1);
    CHECK(list.front().most_in_flight == most);
  }
}

}  // namespace stage_options_test
