#include "planner/search/layout.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <numeric>

#include "planner/exchange/megatron_rules.hpp"
#include "planner/report/strategy_text.hpp"
#include "planner/search/layout_search.hpp"
#include "planner/search/strategy.hpp"
#include "tests/costmodel/support/scenarios.hpp"
#include "tests/planner/support/layout_brute_force.hpp"

namespace layout_test {

using costmodel::Evaluator;
using costmodel::ParallelPlan;
using costmodel::Scenario;
using layouts::best_of;
using layouts::infinity;
using planner::cut_layout;
using planner::improved_layout;
using planner::memory_limit;
using planner::some_layout_fits;
using scenarios::read;

namespace {

const char* const dense =
    "model: {kind: llama, layers: 10, hidden: 2048, heads: 16, kv_heads: 4, ffn_hidden: 8192, "
    "vocab: 128256}\ncluster: {base: dgx-h100, devices: 8}\n"
    "training: {global_batch: 32, sequence: 4096, stack: megatron-core-2026}\n";
const char* const mixed =
    "model: {kind: moe, layers: 9, hidden: 1024, heads: 16, ffn_hidden: 4096, vocab: 128256, "
    "experts: 8, top_k: 2, expert_ffn_hidden: 1024, first_dense_layers: 3}\n"
    "cluster: {base: dgx-h100, devices: 8}\n"
    "training: {global_batch: 32, sequence: 4096, stack: megatron-core-2026}\n";
const char* const two_stacks =
    "model: {kind: t5, encoder_layers: 4, decoder_layers: 5, hidden: 1024, heads: 16, "
    "ffn_hidden: 4096, vocab: 128256}\n"
    "cluster: {base: dgx-h100, devices: 8}\n"
    "training: {global_batch: 32, sequence: 2048, decoder_sequence: 1024, "
    "stack: megatron-core-2026}\n";

ParallelPlan pipeline(int pp, int tp) {
  ParallelPlan plan;
  plan.pp = pp;
  plan.tp = tp;
  plan.dp = 8 / pp / tp;
  return plan;
}

// Holds the cut of a plan's layers against trying all; returns whether it is the most even one.
bool check_cut(ParallelPlan plan, costmodel::Bytes limit, double tight, Evaluator& evaluator) {
  const layouts::Best best = best_of(plan, limit, evaluator);
  const auto cut = cut_layout(plan, limit, evaluator);
  CHECK(cut.stage_layers.empty() == (best.time == infinity));
  CHECK(some_layout_fits(plan, limit, evaluator) == (best.time < infinity));
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
        // With an encoder transfers differ by boundary, and none is counted.
        uneven +=
            check_cut(plan, peak * share, yaml == two_stacks ? 0.08 : 0.03, evaluator) ? 0 : 1;
        binding += best_of(plan, peak * share, evaluator).bound > roomy * (1 + 1e-9) ? 1 : 0;
        ++checked;
      }
    }
  }
  CHECK(checked == 54);
  CHECK(binding >= 6);  // memory decides some of them
  CHECK(uneven >= 20);
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
    const auto found = cut_layout(plan, limit, evaluator).stage_layers;
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
      const auto found = planner::layouts_within(plan, limit, evaluator, longest, 1000);
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
      CHECK_FALSE(planner::layouts_within(plan, limit, evaluator, longest, 0).has_value());
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
  CHECK(cut_layout(plan, memory_limit(s), evaluator).bound.value <= known);
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
    const auto start = cut_layout(plan, limit, evaluator).stage_layers;
    const auto found = improved_layout(plan, start, limit, evaluator);
    CHECK(found.iteration.value >= best * (1 - 1e-12));
    CHECK(found.iteration.value <= best * 1.005);
    plan.stage_layers = found.stage_layers;
    CHECK(evaluator.iteration_time(plan) == found.iteration);
  }
}

namespace {

// The least simulated time of any layout of any 1F1B pipeline without recomputation and with ZeRO
// 0.
double best_of_all(const Scenario& s) {
  Evaluator evaluator(s.model, s.cluster, s.training);
  double best = infinity;
  for (const int pp : {2, 4}) {
    ParallelPlan plan = pipeline(pp, 1);
    for (const std::int64_t b : {1, 2, 4}) {
      plan.micro_batch = b;
      plan.stage_layers = planner::balanced_layout(s.model.layers, pp);
      if (!is_valid(plan, s.model, s.cluster, s.training)) continue;
      best = std::min(best, best_of(plan, memory_limit(s), evaluator).time);
    }
  }
  return best;
}

}  // namespace

TEST_CASE("the search over layouts finds what even stages cannot, with a bound that holds") {
  const Scenario s = read(std::string(dense) +
                          "plan: {tp: 1, cp: 1, vpp: 1, zero: 0, recompute: none}\n"
                          "search: {max_pp: 4, max_micro_batch: 4, top: 1}\n");
  const double best = best_of_all(s);
  const auto all = planner::run_strategies(s, planner::Reach::layouts, 1, {});
  REQUIRE(!all.found.plans.empty());
  CHECK(all.found.plans.front().iteration.value <= best * 1.005);
  CHECK(all.found.lower_bound.value <= best);
  CHECK(all.found.lower_bound <= all.found.plans.front().iteration);
  CHECK(all.layouts->sliced > 0);
}

TEST_CASE("an uneven layout beats even stages, and is written in Megatron-LM's words") {
  // Ten layers and a large vocabulary on four stages: three layers behind the embedding are too few
  // or the last stage too slow.
  const Scenario s =
      read(std::string(dense) + "plan: {tp: 2, pp: 4, cp: 1, vpp: 1, micro_batch: 1}\n");
  const auto all = planner::run_strategies(s, planner::Reach::layouts, 2, {});
  REQUIRE(!all.found.plans.empty());
  const auto& best = all.found.plans.front();
  REQUIRE(planner::has_uneven_stages(best.plan));
  if (!all.even.empty()) CHECK(best.iteration < all.even.front().iteration);
  CHECK(planner::megatron_violations(s, best.plan).empty());
  bool told = false;
  for (const auto& line : strategy_sentences(all))
    told |= line.find("--pipeline-model-parallel-layout " + planner::pipeline_layout(best.plan)) !=
            std::string::npos;
  CHECK(told);
}

TEST_CASE("the search over layouts gives the same for any number of threads") {
  for (const char* yaml : {dense, mixed, two_stacks}) {
    const Scenario s = read(yaml);
    const auto one = planner::run_strategies(s, planner::Reach::layouts, 1, {});
    REQUIRE(!one.found.plans.empty());
    std::atomic<int> polled{0};
    for (const int threads : {2, 5}) {
      const auto several = planner::run_strategies(s, planner::Reach::layouts, threads,
                                                   [&] { return ++polled < 0; });
      REQUIRE(several.found.plans.size() == one.found.plans.size());
      for (std::size_t i = 0; i < one.found.plans.size(); ++i) {
        CHECK(several.found.plans[i].plan == one.found.plans[i].plan);
        CHECK(several.found.plans[i].iteration == one.found.plans[i].iteration);
      }
      CHECK(several.found.lower_bound == one.found.lower_bound);
      CHECK(several.layouts->opened == one.layouts->opened);
    }
    CHECK(polled > 0);
  }
}

TEST_CASE("time that runs out leaves the even plans and a bound that holds") {
  const Scenario s = read(mixed);
  const auto whole = planner::run_strategies(s, planner::Reach::layouts, 1, {});
  const auto none = planner::run_strategies(s, planner::Reach::layouts, 2, [] { return true; });
  CHECK(none.layouts->expired);
  REQUIRE(!none.found.plans.empty());
  CHECK(none.found.plans.front().plan == none.even.front().plan);
  CHECK(none.found.lower_bound <= whole.found.plans.front().iteration);
}

TEST_CASE("an interruption ends the search over even plans too") {
  const Scenario s = read(mixed);
  const auto none = planner::run_strategies(s, planner::Reach::layouts, 1, {}, [] { return true; });
  CHECK(none.found.expired);
  CHECK(none.found.plans.empty());
  CHECK_FALSE(none.layouts);
  const auto even = planner::run_strategies(s, planner::Reach::even, 1, {}).found;
  const auto later = [&](int most) {
    return planner::run_strategies(s, planner::Reach::all, 1, {},
                                   [asked = 0, most]() mutable { return ++asked > most; });
  };
  int most = 1;
  while (!later(most).layouts) most *= 2;
  const auto cut = later(most);
  CHECK_FALSE(cut.found.expired);
  CHECK(cut.layouts->expired);
  CHECK_FALSE(cut.sharding);
  CHECK(cut.even.front().plan == even.plans.front().plan);
}

TEST_CASE("layouts are searched where the plan fixes recomputation of a part of the layers") {
  const Scenario s = read(
      "model: llama-3-8b\ncluster: {base: dgx-h100, devices: 16}\n"
      "training: {global_batch: 128, sequence: 4096, stack: megatron-core-2025}\n"
      "plan: {pp: 8, tp: 2, recompute: {granularity: full, layers: 1}, schedule: 1f1b, vpp: 1, "
      "micro_batch: 1}\n");
  const auto all = planner::run_strategies(s, planner::Reach::layouts, 1, {});
  REQUIRE(!all.found.plans.empty());
  CHECK(all.layouts->sliced > 0);
  ParallelPlan uneven = all.found.plans.front().plan;
  uneven.stage_layers = {4, 5, 4, 4, 4, 4, 4, 3};
  Evaluator evaluator(s.model, s.cluster, s.training);
  REQUIRE(evaluator.cost(uneven).peak <= memory_limit(s));
  const auto time = evaluator.iteration_time(uneven);
  CHECK(all.found.plans.front().iteration <= time);
  CHECK(all.found.lower_bound <= time);
}

TEST_CASE("the bound holds for layouts that recompute less than an even one") {
  // Six layers of each stage: 18 of this layout, 23 of the most even one.
  const Scenario s = read(
      "model: {base: gpt-tiny, layers: 24, vocab: 17000}\n"
      "cluster: {base: laptop-cpu, devices: 4}\n"
      "training: {global_batch: 1024, sequence: 128, precision: fp32, stack: shardplan-cpu}\n"
      "plan: {pp: 4, micro_batch: 1, schedule: 1f1b, vpp: 1, "
      "recompute: {granularity: full, layers: 6}}\n");
  const auto all = planner::run_strategies(s, planner::Reach::layouts, 1, {});
  const auto cut_short =
      planner::run_strategies(s, planner::Reach::layouts, 1, [] { return true; });
  REQUIRE(!all.found.plans.empty());
  ParallelPlan uneven = all.found.plans.front().plan;
  uneven.stage_layers = {8, 8, 8, 0};
  Evaluator evaluator(s.model, s.cluster, s.training);
  REQUIRE(evaluator.cost(uneven).peak <= memory_limit(s));
  const auto time = evaluator.iteration_time(uneven);
  CHECK(all.found.lower_bound <= time);
  CHECK(cut_short.found.lower_bound <= time);
  CHECK(all.found.plans.front().iteration <= time);
}

TEST_CASE("no layout of plans that recompute in part is below the bound, nor much below the plan") {
  for (const char* yaml : {dense, mixed, two_stacks}) {
    for (const int again : {1, 2, 4}) {
      for (const int b : {1, 4, 8}) {
        const Scenario s =
            read(std::string(yaml) +
                 "plan: {pp: 4, tp: 1, vpp: 1, cp: 1, ep: 1, zero: 1, micro_batch: " +
                 std::to_string(b) +
                 ", recompute: {granularity: full, layers: " + std::to_string(again) + "}}\n");
        const auto all = planner::run_strategies(s, planner::Reach::layouts, 1, {});
        REQUIRE(!all.found.plans.empty());
        Evaluator evaluator(s.model, s.cluster, s.training);
        const double best = best_of(all.found.plans.front().plan, memory_limit(s), evaluator).time;
        CAPTURE(again);
        CAPTURE(b);
        CHECK(all.found.lower_bound.value <= best * (1 + 1e-12));
        CHECK(all.found.plans.front().iteration.value <= best * 1.02);
      }
    }
  }
}

TEST_CASE("a search over even stages says what it leaves out, where there is anything") {
  const auto left = [](const std::string& plan, planner::Reach reach) {
    const Scenario s = read(dense + plan);
    return left_out(planner::run_strategies(s, reach, 1, {}), s);
  };
  CHECK(left("", planner::Reach::even).find("--strategy layouts") != std::string::npos);
  CHECK(left("", planner::Reach::layouts).find("--strategy both") != std::string::npos);
  CHECK(left("plan: {pp: 1}\n", planner::Reach::layouts).empty());
  CHECK(left("plan: {pp: 1}\n", planner::Reach::even).empty());
  CHECK(left("plan: {pp: 2, tp: 1, stage_layers: [6, 4]}\n", planner::Reach::even).empty());
}

TEST_CASE("layouts that the scenario fixes are left alone") {
  const Scenario s = read(std::string(dense) + "plan: {pp: 2, tp: 1, stage_layers: [6, 4]}\n");
  const auto all = planner::run_strategies(s, planner::Reach::layouts, 1, {});
  CHECK(all.layouts->families == 0);
  REQUIRE(!all.found.plans.empty());
  for (const auto& e : all.found.plans) CHECK(e.plan.stage_layers == std::vector{6, 4});
}

}  // namespace layout_test
