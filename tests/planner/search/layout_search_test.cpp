#include "planner/search/layout_search.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>

#include "costmodel/estimate/evaluator.hpp"
#include "planner/frameworks/megatron_rules.hpp"
#include "planner/report/strategy_text.hpp"
#include "planner/search/layout.hpp"
#include "planner/search/strategy.hpp"
#include "tests/costmodel/support/scenarios.hpp"
#include "tests/planner/support/layout_brute_force.hpp"

namespace layout_search_test {

using costmodel::Evaluator;
using costmodel::ParallelPlan;
using costmodel::Scenario;
using layouts::best_of;
using layouts::dense;
using layouts::infinity;
using layouts::mixed;
using layouts::pipeline;
using layouts::two_stacks;
using planner::memory_limit;
using scenarios::read;

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
  for (const auto& line : strategy_sentences(all, s.training.stack))
    told |= line.find("--pipeline-model-parallel-layout " + planner::pipeline_layout(best.plan)) !=
            std::string::npos;
  CHECK(told);
  auto other = s.training.stack;  // lists stages in words of its own
  other.framework = "torchtitan, PyTorch FSDP2";
  for (const auto& line : strategy_sentences(all, other))
    CHECK(line.find("Megatron") == std::string::npos);
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
  const costmodel::Estimate& fastest = none.fastest ? *none.fastest : none.found.plans.front();
  CHECK(fastest.plan == none.even.front().plan);
  CHECK(none.found.lower_bound <= whole.found.plans.front().iteration);
}

TEST_CASE("an interruption ends the search over even plans too") {
  const Scenario s = read(mixed);
  const auto none = planner::run_strategies(s, planner::Reach::layouts, 1, {}, [] { return true; });
  CHECK(none.found.expired);
  CHECK(none.found.plans.empty());
  CHECK_FALSE(none.layouts);
  const auto even = planner::run_strategies(s, planner::Reach::even, 1, {}).even;
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
  CHECK(cut.even.front().plan == even.front().plan);
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

TEST_CASE("of two stacks a layout may fit that holds fewer copies of the token table") {
  // Even stages start the decoder on the second rank, this layout on the first, which has a table.
  const Scenario s = read(
      "model: {kind: t5, encoder_layers: 5, decoder_layers: 3, hidden: 768, vocab: 51200, "
      "heads: 6, kv_heads: 1, ffn_hidden: 1536, tie_embeddings: false}\n"
      "cluster: {base: dgx-gb200, devices: 4, "
      "device: {base: gb200, memory: {bytes: 724121728}}}\n"
      "training: {global_batch: 16, sequence: 256, precision: fp8, stack: shardplan-cpu, "
      "overlap: {overlap_grad_reduce: false, pp_overlap: false}}\n"
      "plan: {tp: 1, micro_batch: 2, zero: 1, recompute: {granularity: full, layers: 2}}\n"
      "search: {memory_margin: 0}\n");
  ParallelPlan plan;
  plan.pp = plan.dp = 2;
  plan.micro_batch = 2;
  plan.zero = 1;
  plan.recompute = *s.plan.recompute;
  plan.stage_layers = {6, 2};
  REQUIRE(is_valid(plan, s.model, s.cluster, s.training));
  Evaluator evaluator(s.model, s.cluster, s.training);
  REQUIRE(evaluator.cost(plan).peak <= memory_limit(s));
  const auto all = planner::run_strategies(s, planner::Reach::layouts, 1, {});
  REQUIRE(!all.found.plans.empty());
  CHECK(all.found.plans.front().iteration <= evaluator.iteration_time(plan));
  CHECK(all.found.lower_bound <= evaluator.iteration_time(plan));
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

TEST_CASE("interleaved layouts that start far from the best are improved where that is cheap") {
  const auto best = [](const std::string& plan) {
    const Scenario s = read(
        "model: deepseek-v2-lite\n"
        "cluster: {device: a100-sxm4-80gb, devices: 24, devices_per_node: 8, tiers: ["
        "{name: nvlink, devices: 8, bandwidth_bytes_per_s: 300 GB/s, latency_s: 3 us}, "
        "{name: net, devices: 24, bandwidth_bytes_per_s: 5 GB/s, latency_s: 10 us}]}\n"
        "training: {global_batch: 64, sequence: 4096, stack: megatron-core-2026}\n"
        "search: {simpler_within: 0, top: 1}\nplan: " +
        plan + "\n");
    const auto all = planner::run_strategies(s, planner::Reach::layouts, 1, {});
    CHECK(planner::proved_but(all).find("without a proof") != std::string::npos);
    return all.found.plans.front().iteration.value;
  };
  const double given = best("{tp: 1, pp: 3, vpp: 3, ep: 8}"), open = best("{tp: 1, pp: 3, ep: 8}");
  CHECK(open <= given * (1 + 1e-9));
}

TEST_CASE("a search over even stages says what it leaves out, where there is anything") {
  const auto left = [](const std::string& plan, planner::Reach reach) {
    const Scenario s = read(dense + plan);
    return left_out(planner::run_strategies(s, reach, 1, {}), s);
  };
  CHECK(left("", planner::Reach::even).find("--strategy layouts") != std::string::npos);
  CHECK(left("", planner::Reach::layouts).find("--strategy both") != std::string::npos);
  const std::string groups = left("plan: {zero: 3, dp_replicate: 2}\n", planner::Reach::layouts);
  CHECK(groups.find("neither groups of shards nor ZeRO++") != std::string::npos);
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

}  // namespace layout_search_test
