#include "planner/search/layout.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <tuple>

#include "costmodel/estimate/evaluator.hpp"
#include "planner/search/grid_search.hpp"
#include "tests/costmodel/support/scenarios.hpp"
#include "tests/planner/support/layout_brute_force.hpp"

namespace layout_test {

using costmodel::Evaluator;
using costmodel::ParallelPlan;
using costmodel::Scenario;
using layouts::best_of;
using layouts::dense;
using layouts::infinity;
using layouts::mixed;
using layouts::pipeline;
using layouts::two_stacks;
using planner::cut_layout;
using planner::improved_layout;
using planner::LayoutStages;
using planner::memory_limit;
using planner::some_layout_fits;
using scenarios::read;

namespace {

// What was priced within a limit of memory gives the cut without one as if priced anew.
void check_by_time(LayoutStages& stages) {
  LayoutStages anew(stages.plan(), costmodel::Bytes(infinity), stages.evaluator());
  const auto by_time = planner::cut_by_time(stages, {});
  CHECK_FALSE(by_time.empty());
  CHECK(by_time == cut_layout(anew).stage_layers);
}

// Holds the cut of a plan's layers against trying all; returns whether it is the most even one.
bool check_cut(ParallelPlan plan, costmodel::Bytes limit, double tight, Evaluator& evaluator) {
  const layouts::Best best = best_of(plan, limit, evaluator);
  LayoutStages stages(plan, limit, evaluator);
  const auto cut = cut_layout(stages);
  CHECK(cut.stage_layers.empty() == (best.time == infinity));
  CHECK(some_layout_fits(stages) == (best.time < infinity));
  check_by_time(stages);
  if (cut.stage_layers.empty()) return true;
  CHECK(cut.bound.value <= best.time * (1 + 1e-12));
  CHECK(cut.bound.value >= best.bound * (1 - tight));
  plan.stage_layers = cut.stage_layers;
  CHECK(evaluator.cost(plan).peak <= limit);
  CHECK(evaluator.cost(plan).bound.iteration.value <= best.bound * (1 + tight));
  return cut.stage_layers == planner::balanced_layout(evaluator.model().layers, plan.pp);
}

}  // namespace

TEST_CASE("an even layout counts embedding and loss as layers and leaves nothing out") {
  CHECK(planner::balanced_layout(80, 12) == std::vector{6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 6, 5});
  CHECK(planner::balanced_layout(2, 4) == std::vector{0, 1, 1, 0});
  CHECK(planner::balanced_layout(1, 2) == std::vector{1, 0});
  for (int layers = 1; layers < 30; ++layers) {
    for (int stages = 1; stages <= layers + 2; ++stages) {
      const auto layout = planner::balanced_layout(layers, stages);
      CHECK(static_cast<int>(layout.size()) == stages);
      CHECK(std::accumulate(layout.begin(), layout.end(), 0) == layers);
      CHECK(*std::min_element(layout.begin(), layout.end()) >= 0);
    }
  }
}

TEST_CASE("what ranks hold is dealt to their chunks as evenly as it divides") {
  CHECK(planner::dealt_to_chunks({16, 16}, 1) == std::vector{16, 16});
  // With embedding and loss 18 and 16 for six chunks each.
  CHECK(planner::dealt_to_chunks({17, 15}, 6) == std::vector{2, 3, 3, 3, 3, 3, 3, 3, 3, 2, 3, 1});
  CHECK(planner::dealt_to_chunks({0, 3, 1}, 2).empty());  // a chunk between without layers
}

TEST_CASE("no layout is below the bound of the best cut, which is nearly as good as it can be") {
  int binding = 0, checked = 0, uneven = 0;
  for (const char* yaml : {dense, mixed, two_stacks}) {
    const Scenario s = read(yaml);
    Evaluator evaluator(s.model, s.cluster, s.training);
    for (const auto& [pp, tp, zero, again] :
         {std::tuple{2, 1, 0, 0}, std::tuple{4, 1, 1, 0}, std::tuple{4, 2, 0, 1},
          std::tuple{4, 1, 2, 2}, std::tuple{8, 1, 0, 0}, std::tuple{2, 1, 3, 0}}) {
      ParallelPlan plan = pipeline(pp, tp);
      plan.zero = zero;
      if (again > 0) plan.recompute = {costmodel::Recomputation::full, again};
      plan.stage_layers = planner::balanced_layout(s.model.layers, pp);
      const auto peak = evaluator.cost(plan).peak;
      const double roomy = best_of(plan, peak * 2.0, evaluator).bound;
      for (const double share : {2.0, 0.97, 0.85}) {
        CAPTURE(yaml);
        CAPTURE(pp);
        CAPTURE(zero);
        CAPTURE(share);
        // With an encoder transfers differ by boundary, and none is counted. Layers whose pace the
        // host sets gain nothing from idling, which the bound grants to all.
        const double tight = yaml == two_stacks ? 0.08 : yaml == mixed ? 0.04 : 0.03;
        uneven += check_cut(plan, peak * share, tight, evaluator) ? 0 : 1;
        binding += best_of(plan, peak * share, evaluator).bound > roomy * (1 + 1e-9) ? 1 : 0;
        ++checked;
      }
    }
  }
  CHECK(checked == 54);
  CHECK(binding >= 6);  // memory decides some of them
  CHECK(uneven >= 20);
}

// Stages are priced in a pipeline of their likes; what a stage waits for is of the layout's own.
TEST_CASE("the bound counts no reduction of later stages that the layout does not have") {
  const Scenario s = read(
      "model: {kind: llama, layers: 10, hidden: 4096, heads: 32, ffn_hidden: 16384, vocab: "
      "128256}\n"
      "cluster: {base: dgx-h100, devices: 16}\n"
      "training: {global_batch: 8, sequence: 64, precision: bf16, stack: nanotron}\n");
  Evaluator evaluator(s.model, s.cluster, s.training);
  for (const int pp : {2, 4}) {
    CAPTURE(pp);
    ParallelPlan plan = pipeline(pp, 2);
    plan.dp = 8 / pp;
    plan.stage_layers = planner::balanced_layout(s.model.layers, pp);
    const auto& ranks = evaluator.cost(plan).ranks;
    CHECK(ranks.front().after.gradient_exposed > ranks.back().after.gradient_exposed);
    const auto limit = evaluator.cost(plan).peak * 2.0;
    LayoutStages stages(plan, limit, evaluator);
    const double best = best_of(plan, limit, evaluator).bound;
    const auto cut = cut_layout(stages);
    CHECK(cut.bound.value <= best * (1 + 1e-9));
    plan.stage_layers = cut.stage_layers;  // those of later stages drew layers away from the first
    CHECK(evaluator.cost(plan).bound.iteration.value <= best * 1.05);
  }
}

// A decoder that starts on the first rank shares the encoder's table: that layout's optimizers take
// less than the mean of others.
TEST_CASE("with two stacks the bound is of layouts with one table less, too") {
  const Scenario s = read(
      "model: {kind: t5, hidden: 256, vocab: 51200, encoder_layers: 6, decoder_layers: 3, heads: "
      "4, "
      "ffn_hidden: 1024, tie_embeddings: false}\ncluster: {base: laptop-cpu, devices: 8}\n"
      "training: {global_batch: 1, sequence: 256, precision: fp32, stack: zero-bubble-fork}\n");
  Evaluator evaluator(s.model, s.cluster, s.training);
  ParallelPlan plan = pipeline(2, 4);
  plan.stage_layers = planner::balanced_layout(s.model.layers, 2);
  const double least = best_of(plan, s.cluster.device.memory, evaluator).bound;
  LayoutStages stages(plan, s.cluster.device.memory, evaluator);
  const auto cut = cut_layout(stages);
  CHECK(cut.bound.value <= least * (1 + 1e-9));
  plan.stage_layers = {7, 2};
  CHECK(evaluator.cost(plan).bound.iteration.value == doctest::Approx(least));
}

TEST_CASE("encoder and decoder layers of any sizes are dealt out as trying all layouts does") {
  fixtures::Random random(20200);
  int uneven = 0, cut_inside = 0;
  constexpr int instances = 40;
  for (int i = 0; i < instances; ++i) {
    const int encoder = random.integer(1, 6), decoder = random.integer(1, 6);
    const int size = 1 << random.integer(0, 4);
    const auto number = [](int n) { return std::to_string(n); };
    const Scenario s =
        read("model: {kind: t5, encoder_layers: " + number(encoder) +
             ", decoder_layers: " + number(decoder) + ", hidden: " + number(64 * size) +
             ", heads: 8, ffn_hidden: " + number(256 * size * random.integer(1, 4)) +
             ", vocab: " + number(random.integer(1, 8) * 8000) +
             (random.integer(0, 1) == 0 ? ", tie_embeddings: false" : "") +
             (random.integer(0, 1) == 0 ? ", max_positions: 4096" : "") +
             "}\ncluster: {base: dgx-a100, devices: 8}\ntraining: {global_batch: 32, sequence: " +
             number(128 << random.integer(0, 4)) +
             ", decoder_sequence: " + number(128 << random.integer(0, 4)) + ", stack: " +
             (random.integer(0, 1) == 0 ? "megatron-2021" : "megatron-core-2025") + "}\n");
    Evaluator evaluator(s.model, s.cluster, s.training);
    ParallelPlan plan = pipeline(random.integer(0, 1) == 0 ? 2 : 4, 1);
    plan.zero = random.integer(0, 1);
    plan.zero = std::min(plan.zero, s.training.stack.offers.max_zero);
    const int layers = encoder + decoder;
    if (layers + 2 < plan.pp) continue;
    if (random.integer(0, 2) == 0) plan.recompute = {costmodel::Recomputation::full, 0};
    plan.stage_layers = planner::balanced_layout(layers, plan.pp);
    const auto limit = evaluator.cost(plan).peak * random.real(0.9, 1.3);
    CAPTURE(i);
    uneven += check_cut(plan, limit, 0.2, evaluator) ? 0 : 1;  // transfers, as above
    LayoutStages stages(plan, limit, evaluator);
    const auto found = cut_layout(stages).stage_layers;
    for (std::size_t k = 0; k + 1 < found.size(); ++k) {
      const int end = std::accumulate(found.begin(), found.begin() + static_cast<long>(k) + 1, 0);
      cut_inside += end > encoder && end < layers ? 1 : 0;
    }
  }
  CHECK(uneven >= 20);
  CHECK(cut_inside >= 25);  // stages begin within the decoder
}

TEST_CASE("layouts within a time are all those that take no longer") {
  int listed = 0;
  for (const char* yaml : {dense, mixed, two_stacks}) {
    const Scenario s = read(yaml);
    Evaluator evaluator(s.model, s.cluster, s.training);
    for (const std::int64_t b : {1, 4}) {
      ParallelPlan plan = pipeline(4, 1);
      plan.micro_batch = b;
      plan.stage_layers = planner::balanced_layout(s.model.layers, plan.pp);
      const auto limit = evaluator.cost(plan).peak * 1.05;
      const costmodel::Seconds longest(best_of(plan, limit, evaluator).time * 1.01);
      LayoutStages stages(plan, limit, evaluator);
      const auto found = planner::layouts_within(stages, longest, 1000);
      REQUIRE(found.has_value());
      layouts::visit_all(s.model.layers, plan.pp, [&](const std::vector<int>& layout) {
        plan.stage_layers = layout;
        const bool fits = evaluator.cost(plan).peak <= limit;
        const bool quick = evaluator.iteration_time(plan) <= longest;
        const bool is_listed = std::find(found->begin(), found->end(), layout) != found->end();
        CHECK((is_listed || !fits || !quick));
        CHECK((fits || !is_listed));
        listed += is_listed ? 1 : 0;
      });
      CHECK_FALSE(planner::layouts_within(stages, longest, 0).has_value());
    }
  }
  CHECK(listed >= 10);
}

TEST_CASE("the bound of two stacks counts no sum of token tables that a layout may not need") {
  // With all layers on the first stage, encoder and decoder read one copy of the table.
  const Scenario s = read(
      "model: {kind: t5, encoder_layers: 4, decoder_layers: 2, hidden: 1024, heads: 16, "
      "ffn_hidden: 2048, vocab: 128256, tie_embeddings: false}\n"
      "cluster: {base: dgx-h100, devices: 8}\n"
      "training: {global_batch: 4, sequence: 256, decoder_sequence: 4096, "
      "stack: megatron-core-2026}\n");
  Evaluator evaluator(s.model, s.cluster, s.training);
  ParallelPlan plan = pipeline(2, 2);
  plan.zero = 1;
  plan.stage_layers = {6, 0};
  const auto& cost = evaluator.cost(plan);
  REQUIRE(cost.tables.ranks.empty());
  const double known = cost.bound.iteration.value;
  LayoutStages stages(plan, memory_limit(s), evaluator);
  CHECK(cut_layout(stages).bound.value <= known);
  plan.stage_layers = {3, 3};
  CHECK_FALSE(evaluator.cost(plan).tables.ranks.empty());
}

TEST_CASE("stages priced together are priced as one by one") {
  const Scenario s = read(mixed);
  Evaluator evaluator(s.model, s.cluster, s.training);
  ParallelPlan plan = pipeline(4, 1);
  plan.stage_layers = {3, 1, 4, 1};
  const auto times = evaluator.cost(plan).times;
  const auto peak = evaluator.cost(plan).peak;
  std::vector<costmodel::LayerMix> mixes;
  for (std::size_t k = 0; k < 4; ++k) mixes.push_back(evaluator.cost(plan).stages[k].layers);
  CHECK(evaluator.cost(plan, mixes).peak == peak);
  for (std::size_t k = 0; k < 4; ++k) {
    CHECK(evaluator.cost(plan, mixes).times.forward[k] == times.forward[k]);
    CHECK(evaluator.cost(plan, mixes).times.backward[k] == times.backward[k]);
  }
}

TEST_CASE("moving layers finds the layout that trying all finds, or one nearly as good") {
  const Scenario s = read(dense);
  Evaluator evaluator(s.model, s.cluster, s.training);
  for (const int pp : {2, 4}) {
    ParallelPlan plan = pipeline(pp, 1);
    const auto limit = memory_limit(s);
    const double best = best_of(plan, limit, evaluator).time;
    LayoutStages stages(plan, limit, evaluator);
    const auto start = cut_layout(stages).stage_layers;
    const auto found = improved_layout(plan, start, limit, evaluator);
    CHECK(found.iteration.value >= best * (1 - 1e-12));
    CHECK(found.iteration.value <= best * 1.005);
    plan.stage_layers = found.stage_layers;
    CHECK(evaluator.iteration_time(plan) == found.iteration);
  }
}

}  // namespace layout_test
