#include "planner/sharding/stage_sharding.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "costmodel/estimate/evaluator.hpp"
#include "planner/report/sharding_report.hpp"
#include "planner/sharding/known_schemes.hpp"
#include "tests/costmodel/support/scenarios.hpp"

namespace stage_sharding_test {

using costmodel::Bytes;
using costmodel::Evaluator;
using costmodel::LayerKind;
using costmodel::Recomputed;
using costmodel::Scenario;
using fixtures::contains;
using planner::critical_stage;
using planner::Cut;
using planner::DeviceMesh;
using planner::shard_stage;
using planner::sharding_sentences;
using planner::sharding_table;
using planner::Split;
using planner::StageSharding;
using planner::StageSpec;

namespace {

Scenario scenario(const std::string& model, const std::string& cluster, int batch) {
  return scenarios::read("model: {" + model + "}\ncluster: {" + cluster +
                         "}\ntraining: {global_batch: " + std::to_string(batch) +
                         ", sequence: 2048, stack: megatron-core-2026}\n");
}

const char* const gpt =
    "kind: gpt, layers: 4, hidden: 8192, heads: 64, vocab: 51200, max_positions: 2048";
const char* const small =
    "kind: gpt, layers: 4, hidden: 1024, heads: 16, vocab: 1024, max_positions: 2048";
const char* const experts =
    "kind: moe, layers: 4, hidden: 4096, heads: 32, kv_heads: 8, ffn_hidden: 14336, vocab: 32000, "
    "experts: 8, top_k: 2, expert_ffn_hidden: 14336";
const char* const one_node = "base: dgx-h100, devices: 8";

StageSpec stage(const Scenario& s, LayerKind kind, int layers, int outer, int inner, int batch) {
  StageSpec spec;
  spec.layers.assign(static_cast<std::size_t>(layers), {kind, Recomputed::nothing});
  spec.mesh = planner::device_mesh(outer, inner, s.cluster);
  spec.micro_batch = batch;
  spec.memory = Bytes(1e15);
  return spec;
}

costmodel::ParallelPlan plan_of(int dp, int tp, bool sequence_parallel = false, int zero = 0) {
  costmodel::ParallelPlan plan;
  plan.dp = dp;
  plan.tp = tp;
  plan.sequence_parallel = sequence_parallel;
  plan.zero = zero;
  return plan;
}

StageSharding sharded(const Scenario& s, const StageSpec& spec,
                      const costmodel::ParallelPlan& plan = {}) {
  return shard_stage(spec, plan, Evaluator(s.model, s.cluster, s.training));
}

std::string names(const StageSharding& s) {
  std::string text;
  for (const auto& alike : alike_layers(s.graph, s.found.choice)) {
    for (const auto& name : known_names(s.graph, alike, s.found.choice)) text += name + "\n";
  }
  return text;
}

void check_found(const StageSharding& s) {
  REQUIRE(!s.found.choice.empty());
  CHECK(s.found.lower_bound == s.found.seconds);
  CHECK(s.found.bytes <= s.graph.problem.memory_limit);
  if (s.hand.choice.empty()) return;
  CHECK(price_of(s.graph.problem, s.hand.choice).seconds == s.hand.price.seconds);
  if (s.hand.price.bytes <= s.graph.problem.memory_limit)
    CHECK(s.found.seconds <= s.hand.price.seconds * (1 + 1e-12));
}

}  // namespace

TEST_CASE("resharding: what each pair of layouts needs, and its messages") {
  const Scenario s = scenario(gpt, one_node, 8);
  const planner::MeshPrices prices{&s.cluster, planner::device_mesh(2, 4, s.cluster), {}};
  using costmodel::CollectiveKind;
  const auto steps = [&](planner::TensorLayout from, planner::TensorLayout to) {
    return resharding(Bytes(800), from, to, prices);
  };
  CHECK(steps({Cut::rows, Cut::columns}, {Cut::rows, Cut::columns}).empty());
  CHECK(steps({Cut::whole, Cut::whole}, {Cut::rows, Cut::columns}).empty());
  const auto gather = steps({Cut::rows, Cut::rows}, {Cut::rows, Cut::whole});
  REQUIRE(gather.size() == 1);
  CHECK(gather[0].kind == CollectiveKind::all_gather);
  CHECK(gather[0].axis == 1);
  CHECK(gather[0].message.value == 400);
  const auto exchange = steps({Cut::rows, Cut::rows}, {Cut::rows, Cut::columns});
  REQUIRE(exchange.size() == 1);
  CHECK(exchange[0].kind == CollectiveKind::all_to_all);
  CHECK(exchange[0].message.value == 100);
  const auto sum = steps({Cut::rows, Cut::partial}, {Cut::rows, Cut::rows});
  REQUIRE(sum.size() == 1);
  CHECK(sum[0].kind == CollectiveKind::reduce_scatter);
  CHECK(sum[0].message.value == 400);
  CHECK(steps({Cut::rows, Cut::partial}, {Cut::rows, Cut::whole})[0].kind ==
        CollectiveKind::all_reduce);
  // A tensor that is cut by one axis and gathered along the other is cut first.
  const auto both = steps({Cut::rows, Cut::whole}, {Cut::whole, Cut::rows});
  REQUIRE(both.size() == 1);
  CHECK(both[0].message.value == 200);
  const auto joint = steps({Cut::rows, Cut::rows}, {Cut::whole, Cut::whole});
  CHECK(prices.time(joint) <=
        prices.time(std::vector<planner::Exchange>{{CollectiveKind::all_gather, 0, Bytes(200)},
                                                   {CollectiveKind::all_gather, 1, Bytes(800)}}));
}

TEST_CASE("a large layer on one node with NVLink: Megatron's split is found, and no worse") {
  const Scenario s = scenario(gpt, one_node, 8);
  StageSpec spec = stage(s, LayerKind::block, 2, 1, 8, 1);
  spec.micro_batches = 8;
  for (const bool sequence_parallel : {false, true}) {
    const auto found = sharded(s, spec, plan_of(1, 8, sequence_parallel));
    check_found(found);
    CHECK(found.hand.reason == "");
    CHECK(contains(names(found), "attention and MLP: column then row over axis 1"));
    CHECK(contains(names(found), "= Megatron tensor parallelism"));
    // It knows no wonders: what it gains is communication hidden beside products.
    CHECK(found.found.seconds > found.hand.price.seconds * 0.7);
  }
  // Whole: each device does all of it.
  const auto alone = sharded(s, stage(s, LayerKind::block, 2, 1, 1, 1));
  CHECK(alone.graph.problem.nodes[1].size() == 1);
}

TEST_CASE("many sequences and small weights: data parallelism is found") {
  const Scenario s = scenario(small, one_node, 512);
  StageSpec spec = stage(s, LayerKind::block, 2, 1, 8, 64);
  const auto found = sharded(s, spec, plan_of(1, 8));
  check_found(found);
  CHECK(contains(names(found), "attention and MLP: batch over axis 1 = data parallelism"));
  CHECK(!contains(names(found), "ZeRO-3"));
  CHECK(found.found.seconds < found.hand.price.seconds);
}

TEST_CASE("on two axes: batch over nodes and Megatron's split inside, as people do it") {
  const Scenario s = scenario(gpt, "base: dgx-h100, devices: 16", 16);
  StageSpec spec = stage(s, LayerKind::block, 1, 2, 8, 2);
  spec.micro_batches = 16;
  const auto found = sharded(s, spec, plan_of(2, 8));
  check_found(found);
  CHECK(contains(names(found), "column then row over axis 1"));
  CHECK(contains(names(found), "batch over axis 0 = data parallelism"));
}

TEST_CASE("the tighter memory, the higher the ZeRO stage and the longer the iteration") {
  const Scenario s = scenario(small, one_node, 512);
  StageSpec spec = stage(s, LayerKind::block, 3, 8, 1, 64);
  const auto roomy = sharded(s, spec, plan_of(8, 1));
  const auto whole = sharded(s, spec, plan_of(8, 1, false, 3));
  REQUIRE(whole.hand.reason == "");
  CHECK(contains(names(roomy), "batch over axis 0"));
  spec.memory = Bytes(whole.hand.price.bytes);  // what ZeRO-3 needs and no more
  const auto tight = sharded(s, spec, plan_of(8, 1));
  check_found(tight);
  CHECK(contains(names(tight), "weights sharded over axis 0 = ZeRO-3"));
  CHECK(tight.found.seconds > roomy.found.seconds);
  CHECK(tight.found.bytes < roomy.found.bytes);
  CHECK(tight.hand.price.bytes > spec.memory.value);  // plain data parallelism does not fit
  // Between them, some layers or operators are sharded and others are not.
  spec.memory = Bytes((tight.found.bytes + roomy.found.bytes) / 2);
  const auto between = sharded(s, spec, plan_of(8, 1));
  check_found(between);
  CHECK(between.found.seconds < tight.found.seconds);
  CHECK(between.found.seconds >= roomy.found.seconds);
  spec.memory = Bytes(1e6);
  const auto none = sharded(s, spec, plan_of(8, 1));
  CHECK(none.found.choice.empty());
  CHECK(contains(none.found.reason, "memory: at least"));
  CHECK(contains(sharding_sentences(none).back(), "There is no sharding: memory"));
}

TEST_CASE("a mixture of experts: expert parallelism is found where weights outweigh tokens") {
  const Scenario s = scenario(experts, one_node, 64);
  StageSpec spec = stage(s, LayerKind::moe, 2, 1, 8, 8);
  spec.memory = Bytes(60e9);
  const auto found = sharded(s, spec);
  check_found(found);
  CHECK(contains(names(found), "experts: experts over axis 1 = expert parallelism"));
  // A plan that deals experts out to eight of sixteen data ranks is one of the choices.
  const Scenario two = scenario(experts, "base: dgx-h100, devices: 16", 64);
  costmodel::ParallelPlan plan = plan_of(16, 1);
  plan.ep = 8;
  StageSpec both = stage(two, LayerKind::moe, 2, 2, 8, 16);
  both.mesh = planner::device_mesh(plan, two.cluster);
  CHECK(both.mesh.size(0) == 2);
  CHECK(both.mesh.size(1) == 8);
  const auto beside = sharded(two, both, plan);
  check_found(beside);
  CHECK(beside.hand.reason == "");
}

TEST_CASE("embedding and head: the vocabulary is cut where it is large") {
  const Scenario s = scenario(gpt, one_node, 8);
  StageSpec spec = stage(s, LayerKind::block, 1, 1, 8, 1);
  spec.layers.insert(spec.layers.begin(), {LayerKind::embedding, Recomputed::nothing});
  spec.layers.push_back({LayerKind::head, Recomputed::nothing});
  spec.micro_batches = 8;
  const auto found = sharded(s, spec, plan_of(1, 8));
  check_found(found);
  CHECK(found.hand.reason == "");
  CHECK(!found.graph.has_input);
  CHECK(contains(names(found), "logits: columns"));
}

TEST_CASE("every model family and mesh has a sharding that its brute-force price confirms") {
  for (const char* name : {"gpt3-125m", "llama-3-8b", "mixtral-8x7b", "deepseek-v2-lite",
                           "mamba2-130m", "gpt-neox-20b"}) {
    const Scenario s = scenario(std::string("base: ") + name, one_node, 64);
    const LayerKind kind = s.model.blocks().back();
    for (const auto& [outer, inner] : {std::pair{1, 1}, std::pair{8, 1}, std::pair{2, 4}}) {
      CAPTURE(name);
      CAPTURE(inner);
      StageSpec spec = stage(s, kind, 2, outer, inner, 8);
      spec.layers.back().again = Recomputed::everything;
      const auto found = sharded(s, spec, plan_of(outer, inner, inner > 1));
      check_found(found);
      CHECK(!names(found).empty());
      const bool divides = s.model.experts == 0 && (s.model.ssm_groups == 0 || inner == 1);
      if (divides) CHECK(found.hand.reason == "");
    }
  }
}

TEST_CASE("a network that carries nothing leaves what needs none of it") {
  Scenario s = scenario(small, one_node, 8);
  for (auto& tier : s.cluster.tiers) {
    tier.bandwidth = tier.single = costmodel::BytesPerSecond(0);
    tier.groups.clear();
    tier.measured.clear();
  }
  const auto found = sharded(s, stage(s, LayerKind::block, 1, 1, 8, 1));
  check_found(found);
  CHECK(contains(names(found), "the same on all devices of axis 1"));
}

TEST_CASE("one giant layer: a sharding where there is room, a reason where there is none") {
  const Scenario s =
      scenario("kind: gpt, layers: 1, hidden: 65536, heads: 512, vocab: 1024, max_positions: 2048",
               one_node, 8);
  StageSpec spec = stage(s, LayerKind::block, 1, 1, 8, 1);
  const auto found = sharded(s, spec);
  check_found(found);
  CHECK(found.found.bytes > s.cluster.device.memory.value);
  spec.memory = s.cluster.device.memory;
  const auto none = sharded(s, spec);
  CHECK(none.found.choice.empty());
  CHECK(contains(none.found.reason, "memory: at least"));
}

TEST_CASE("the stage of a plan: its layers, its memory, and its own sharding at the price told") {
  const Scenario s = scenario(gpt, one_node, 16);
  Evaluator evaluator(s.model, s.cluster, s.training);
  costmodel::ParallelPlan plan = plan_of(2, 2, true, 1);
  plan.pp = 2;
  const auto estimate = evaluator.estimate(plan);
  const auto spec = critical_stage(estimate, s.cluster.device.memory, evaluator);
  CHECK(spec.layers.size() == 3);
  CHECK(spec.mesh.size(0) == 2);
  CHECK(spec.mesh.size(1) == 2);
  CHECK(spec.micro_batches == 8);
  CHECK(spec.memory < s.cluster.device.memory);
  const auto found = shard_stage(spec, plan, evaluator);
  check_found(found);
  REQUIRE(found.hand.reason == "");
  // Its states are those of the cost model; so are its activations, for so many in flight.
  const auto rank = static_cast<std::size_t>(estimate.critical_rank);
  const auto& memory = estimate.memory[rank];
  double states = 0;
  for (std::size_t v = 0; v < found.graph.nodes.size(); ++v)
    states += found.graph.strategy(v, found.hand.choice).states.value;
  const double expected = (memory.weights + memory.gradients + memory.optimizer).value;
  CHECK(states == doctest::Approx(expected).epsilon(0.01));
  CHECK(found.hand.price.bytes - states == doctest::Approx(memory.activations.value).epsilon(0.3));
  const auto lines = sharding_sentences(found);
  CHECK(contains(lines.front(), "mesh of 2 x 2 devices"));
  CHECK(sharding_table(found).rows.size() >= found.graph.kinds.front().sites.size());
}

TEST_CASE(
    "when time runs out the plan's own sharding is reported where nothing quicker was found") {
  const Scenario s = scenario(small, one_node, 512);
  StageSpec spec = stage(s, LayerKind::block, 3, 8, 1, 64);
  const Evaluator evaluator(s.model, s.cluster, s.training);
  int adopted = 0;
  for (const int zero : {0, 1, 2, 3}) {
    const auto plan = plan_of(8, 1, false, zero);
    spec.memory = Bytes(1e15);
    spec.memory = Bytes(shard_stage(spec, plan, evaluator).hand.price.bytes);
    const auto whole = shard_stage(spec, plan, evaluator);
    const auto cut_short = shard_stage(spec, plan, evaluator, [] { return true; });
    CAPTURE(zero);
    REQUIRE(!cut_short.found.choice.empty());
    CHECK(cut_short.found.seconds <= cut_short.hand.price.seconds);
    CHECK(cut_short.found.seconds ==
          price_of(cut_short.graph.problem, cut_short.found.choice).seconds);
    CHECK(cut_short.found.lower_bound <= whole.found.seconds);
    const bool open = cut_short.found.lower_bound < cut_short.found.seconds;
    adopted += open && cut_short.found.choice == cut_short.hand.choice ? 1 : 0;
    for (const auto& line : sharding_sentences(cut_short)) {
      if (open) CHECK(!contains(line, "it is the best"));
    }
  }
  CHECK(adopted > 0);
}

}  // namespace stage_sharding_test
