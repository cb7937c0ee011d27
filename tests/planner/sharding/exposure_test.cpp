#include "planner/sharding/exposure.hpp"

#include <doctest/doctest.h>

#include "costmodel/estimate/evaluator.hpp"
#include "planner/sharding/megatron_sharding.hpp"
#include "planner/sharding/stage_sharding.hpp"
#include "tests/costmodel/support/scenarios.hpp"

namespace exposure_test {

using costmodel::Bytes;
using costmodel::CollectiveKind;
using costmodel::Evaluator;
using costmodel::LayerKind;
using costmodel::ParallelPlan;
using costmodel::Recomputed;
using costmodel::Seconds;

namespace {

costmodel::Scenario scenario(const std::string& overlap) {
  return scenarios::read(
      "model: {kind: llama, layers: 4, hidden: 8192, heads: 64, kv_heads: 8, ffn_hidden: 28672, "
      "vocab: 51200}\ncluster: {base: dgx-h100, devices: 8}\n"
      "training: {global_batch: 8, sequence: 8192, stack: megatron-core-2026, overlap: {" +
      overlap + "}}\n");
}

// The seconds of communication of one layer and micro-batch by the sharding problem's prices.
Seconds communication(const planner::StageGraph& graph, const std::vector<int>& choice) {
  Seconds sum;
  for (std::size_t v = 0; v < graph.nodes.size(); ++v)
    sum += graph.strategy(v, choice).communication + resharding_time(graph, v, choice);
  return sum;
}

planner::StageGraph one_layer(const costmodel::Scenario& s, const Evaluator& evaluator, int outer,
                              int inner) {
  planner::StageSpec spec;
  spec.layers = {{LayerKind::block, Recomputed::nothing}};
  spec.mesh = planner::device_mesh(outer, inner, s.cluster);
  spec.memory = Bytes(1e15);
  return stage_graph(spec, evaluator);
}

planner::StagePrices prices_of(const costmodel::Scenario& s, Evaluator& evaluator, int outer,
                               int inner) {
  planner::StagePrices p{{&s.cluster, planner::device_mesh(outer, inner, s.cluster), Seconds(0)},
                         &s.training,
                         evaluator.pricing(ParallelPlan{}),
                         evaluator.pricing(ParallelPlan{})};
  p.layers = 4;
  p.forward = Seconds(0.1);
  p.backward = Seconds(0.2);
  return p;
}

}  // namespace

TEST_CASE("a layer's collectives are as exposed as the cost model says, whatever overlaps") {
  for (const char* overlap : {"tp_comm_overlap: false", "tp_comm_overlap: true",
                              "tp_comm_overlap: false, compile: true"}) {
    for (const bool sequence_parallel : {false, true}) {
      CAPTURE(overlap);
      CAPTURE(sequence_parallel);
      const auto s = scenario(overlap);
      Evaluator evaluator(s.model, s.cluster, s.training);
      ParallelPlan plan;
      plan.tp = 8;
      plan.sequence_parallel = sequence_parallel;
      const auto graph = one_layer(s, evaluator, 1, 8);
      const auto hand = hand_sharding(graph, plan);
      REQUIRE(hand.reason == "");
      const auto& layer = evaluator.layer(LayerKind::block, plan, Recomputed::nothing);
      const Seconds priced = layer.forward.tp_comm + layer.backward.tp_comm;
      CHECK(communication(graph, hand.choice).value == doctest::Approx(priced.value).epsilon(0.01));
    }
  }
}

TEST_CASE("a ring of context-parallel ranks is as exposed as the cost model says") {
  const auto s = scenario("");
  Evaluator evaluator(s.model, s.cluster, s.training);
  ParallelPlan plan;
  plan.cp = 8;
  const auto graph = one_layer(s, evaluator, 1, 8);
  const auto hand = hand_sharding(graph, plan);
  REQUIRE(hand.reason == "");
  const auto& layer = evaluator.layer(LayerKind::block, plan, Recomputed::nothing);
  Seconds ring;
  for (std::size_t v = 0; v < graph.nodes.size(); ++v) {
    if (graph.site(v).node.site == costmodel::Site::flash_attention)
      ring += graph.strategy(v, hand.choice).communication;
  }
  CHECK(ring.value > 0);
  CHECK(ring.value ==
        doctest::Approx((layer.forward.cp_comm + layer.backward.cp_comm).value).epsilon(1e-9));
}

TEST_CASE(
    "collectives of weights: nothing hidden without a pass or a switch, never more than alone") {
  const auto on = scenario("overlap_grad_reduce: true, overlap_param_gather: true");
  const auto off = scenario("overlap_grad_reduce: false, overlap_param_gather: false");
  Evaluator evaluator_on(on.model, on.cluster, on.training);
  Evaluator evaluator_off(off.model, off.cluster, off.training);
  auto hiding = prices_of(on, evaluator_on, 8, 1);
  const auto plain = prices_of(off, evaluator_off, 8, 1);
  for (const CollectiveKind kind : {CollectiveKind::all_gather, CollectiveKind::reduce_scatter}) {
    for (const double seconds : {0.01, 0.1, 1.0}) {
      const Seconds alone(seconds);
      CHECK(exposed_by_passes(kind, 1, alone, plain) == alone);
      const Seconds exposed = exposed_by_passes(kind, 1, alone, hiding);
      CHECK(exposed < alone);
      CHECK(exposed >= alone / 4);  // the first of four layers has nothing beside it
    }
  }
  hiding.forward = hiding.backward = Seconds(0);
  CHECK(exposed_by_passes(CollectiveKind::all_gather, 1, Seconds(1), hiding) == Seconds(1));
}

}  // namespace exposure_test
