// Mixtures of experts: what dispatch sends, what experts hold, keep and compute, and which ranks
// sum their gradients (GShard, arXiv:2006.16668; Megatron-LM's all-to-all dispatcher).
#include <doctest/doctest.h>

#include <algorithm>

#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/estimate/layer_mix.hpp"
#include "costmodel/model/parameter_count.hpp"
#include "costmodel/operators/transformer.hpp"
#include "costmodel/plan/mesh.hpp"
#include "tests/costmodel/support/fixtures.hpp"

namespace experts_test {

using namespace costmodel;
using fixtures::relative_error;

namespace {

constexpr std::int64_t s = 1024, b = 2, h = 1024, ffn = 512, k = 4, all = 16;
constexpr double element = 2;

ModelSpec model(std::int64_t layers = 4) {
  ModelSpec m = fixtures::gpt(layers, h, 16, 51200, s);
  m.kind = ModelKind::moe;
  m.gated_mlp = true;
  m.linear_bias = m.qkv_bias = false;
  m.tie_embeddings = false;
  m.dropout = 0;
  m.experts = all, m.top_k = k, m.expert_ffn_hidden = ffn;
  return m;
}

LayerContext context(int tp, int ep, int etp) {
  LayerContext c = fixtures::layer_context(tp, tp > 1, b, s);
  c.ep = ep, c.etp = etp;
  c.attention = AttentionKernel::flash;
  return c;
}

LayerCost moe(int tp, int ep, int etp, const ModelSpec& m = model()) {
  static const ClusterSpec cluster = fixtures::cluster(16);
  Pricing p;
  p.cluster = &cluster;
  p.tp_group = layout_of(tp, 1, cluster);
  p.ep_group = layout_of(ep, etp, cluster);
  p.etp_group = layout_of(etp, 1, cluster);
  p.precision = Precision::fp16;
  return layer_cost(build_layer(LayerKind::moe, m, context(tp, ep, etp)), Recomputed::nothing, p);
}

TrainingSpec training() {
  TrainingSpec t = fixtures::training(32, s);
  t.stack.kernels.attention = AttentionKernel::flash;
  return t;
}

Estimate estimated(const ParallelPlan& plan, const ModelSpec& m = model()) {
  const ClusterSpec cluster = fixtures::cluster(plan.devices());
  REQUIRE(violations(plan, m, cluster, training()).empty());
  return Evaluator(m, cluster, training()).estimate(plan);
}

}  // namespace

TEST_CASE("dispatch and combine: each sends (e-1)/e of every token's k copies, forward and back") {
  for (const int ep : {1, 2, 4, 8, 16}) {
    const LayerCost cost = moe(1, ep, 1);
    const double rows = 1.0 * b * s * k * h * element;
    CHECK(cost.forward.traffic.all_to_all.value == 2 * rows * (ep - 1) / ep);
    CHECK(cost.backward.traffic.all_to_all.value == 2 * rows * (ep - 1) / ep);
    CHECK((cost.forward.ep_comm.value > 0) == (ep > 1));
    CHECK(cost.forward.tp_comm.value == 0);
  }
  // Sequence parallelism leaves a rank 1/t of the tokens to send.
  CHECK(moe(4, 8, 1).forward.traffic.all_to_all.value ==
        moe(1, 8, 1).forward.traffic.all_to_all.value / 4);
}

TEST_CASE("ranks of one expert gather its rows and sum its results") {
  const double rows = 1.0 * b * s / 4 * k * h * element;  // of one rank, t 4
  const LayerCost cut = moe(4, 2, 4), whole = moe(4, 2, 1);
  const Traffic a = cut.forward.traffic, w = whole.forward.traffic;
  CHECK(a.all_gather.value - w.all_gather.value == 3 * rows);
  CHECK(a.reduce_scatter.value - w.reduce_scatter.value == 3 * rows);
  CHECK(a.all_to_all.value == w.all_to_all.value);
}

TEST_CASE("model FLOPs are those of the experts a token takes, wherever they are") {
  ModelSpec dense = model();
  dense.experts = 0;
  dense.ffn_hidden = k * ffn;
  const auto flops = [](const OpList& list) {
    Work work;
    for (const auto& steps : {forward_steps(list), backward_steps(list)})
      for (const Step& step : steps) work += work_of(step.node->op, step.pass, 2);
    return work.model.value;
  };
  const double plain = flops(build_layer(LayerKind::block, dense, context(1, 1, 1)));
  const double router = 6.0 * b * s * h * all;
  for (const int ep : {1, 4, 16}) {
    const LayerCost cost = moe(1, ep, 1);
    CHECK(cost.forward.model.value + cost.backward.model.value == plain + router);
  }
  const LayerCost four = moe(4, 2, 4);
  CHECK(4 * (four.forward.model.value + four.backward.model.value) == plain + router);
  ModelSpec shared = model();
  shared.shared_experts = 2;
  dense.ffn_hidden = (k + 2) * ffn;
  const LayerCost with = moe(1, 4, 1, shared);
  CHECK(with.forward.model.value + with.backward.model.value ==
        flops(build_layer(LayerKind::block, dense, context(1, 1, 1))) + router);
}

TEST_CASE("experts divide over ep x etp, everything else over tp") {
  const double experts = 3.0 * h * ffn * all;
  for (const auto& [tp, ep, etp] : {std::tuple{1, 1, 1}, {1, 8, 1}, {4, 4, 4}, {2, 8, 1}}) {
    const LayerCost cost = moe(tp, ep, etp);
    CHECK(cost.expert_weights == experts / (ep * etp));
    const double attention = 4.0 * h * h / tp, norms = 2.0 * 2 * h, router = 1.0 * h * all;
    CHECK(cost.weights - cost.expert_weights == attention + norms + router);
  }
}

TEST_CASE(
    "what the experts of a layer keep: k copies of the input, of gate and up, of their product") {
  ModelSpec one = model();
  one.top_k = 1;
  const double copies = 1.0 * b * s * (h + 2 * ffn + ffn) * element;
  const double places = 1.0 * b * s * 8;
  const double grown = moe(1, 4, 1).footprint.kept.value - moe(1, 4, 1, one).footprint.kept.value;
  CHECK(grown == (k - 1) * (copies + places));
}

TEST_CASE("groups of experts lie on a grid of their own: etp, ep, replicas, stages") {
  ParallelPlan plan;
  plan.tp = 2, plan.dp = 4, plan.pp = 2, plan.ep = 4, plan.sequence_parallel = true;
  const Mesh folded = expert_mesh(plan);
  CHECK(folded.size() == 16);
  CHECK(folded.group(Axis::expert, 1) == std::vector<std::int64_t>{0, 1, 2, 3});
  CHECK(folded.group(Axis::data, 1) == std::vector<std::int64_t>{1, 5});
  CHECK(folded.stride(Axis::pipeline) == Mesh(plan).stride(Axis::pipeline));
  plan.etp = 2;
  CHECK(expert_mesh(plan).group(Axis::expert, 1) == std::vector<std::int64_t>{1, 3, 5, 7});
  CHECK(plan.expert_replicas() == 1);
  const ClusterSpec cluster = fixtures::cluster(16);
  CHECK(layout_of(Axis::expert_tensor, plan, cluster).size == 2);
  CHECK(layout_of(Axis::expert, plan, cluster).stride == 2);
}

TEST_CASE("gradients of experts are summed over fewer ranks, and sharded over them") {
  ParallelPlan plan;
  plan.dp = 8, plan.ep = 4;
  const ClusterSpec cluster = fixtures::cluster(8);
  Evaluator evaluator(model(), cluster, training());
  const PlanCost cost = evaluator.cost(plan);
  const double experts = 4 * 3.0 * h * ffn * all / 4, rest = cost.ranks[0].weights.all - experts;
  CHECK(cost.ranks[0].weights.experts == experts);
  const Estimate e = estimated(plan);
  CHECK(e.traffic.all_reduce.value ==
        doctest::Approx(2 * element * (rest * 7 / 8 + experts * 1 / 2)));
  plan.zero = 1;
  const Estimate z = estimated(plan);
  const double states = optimizer_bytes_per_parameter(training());
  CHECK(z.memory[0].optimizer.value == doctest::Approx(states * (rest / 8 + experts / 2)));
  CHECK(sharded(10, 4, plan) == 6.0 / 8 + 4.0 / 2);
  CHECK(z.memory[0].weights.value == element * cost.ranks[0].weights.all);
  CHECK(z.breakdown.ep_comm.value > 0);
  CHECK(relative_error(z.breakdown.total().value, z.iteration.value) < 1e-12);
}

TEST_CASE("parameters on all devices are the model's, experts once an expert group") {
  for (const int ep : {1, 4, 8}) {
    ParallelPlan plan;
    plan.dp = 8, plan.ep = ep, plan.pp = 2;
    const ClusterSpec cluster = fixtures::cluster(16);
    Evaluator evaluator(model(), cluster, training());
    const PlanCost& cost = evaluator.cost(plan);
    double total = 0;
    for (std::size_t r = 0; r < 2; ++r)
      total += cost.ranks[r].weights.all + cost.ranks[r].weights.experts * (ep - 1);
    const ModelSpec m = model();
    const double padding = 2.0 * (static_cast<double>(padded_vocab(m.vocab, 1)) - 51200) * h;
    CHECK(total == parameter_count(m) + padding);
  }
}

TEST_CASE("dense and sparse layers make stages uneven") {
  ModelSpec mixed = model(8);
  mixed.first_dense_layers = 3;
  mixed.ffn_hidden = 1024;
  ParallelPlan plan;
  plan.pp = 4;
  const ClusterSpec cluster = fixtures::cluster(4);
  Evaluator evaluator(mixed, cluster, training());
  const PlanCost cost = evaluator.cost(plan);
  CHECK(cost.stages[0].layers.number[0] == 2);
  CHECK(cost.stages[1].layers.number[0] == 1);
  CHECK(cost.stages[1].layers.number[1] == 1);
  CHECK(cost.stages[3].layers.number[1] == 2);
  CHECK(cost.ranks[0].weights.experts == 0);
  CHECK(cost.ranks[1].weights.experts * 2 == cost.ranks[2].weights.experts);
  const auto& block = evaluator.layer(LayerKind::block, plan, Recomputed::nothing);
  const auto& sparse = evaluator.layer(LayerKind::moe, plan, Recomputed::nothing);
  CHECK(cost.stages[1].forward.compute.value ==
        doctest::Approx((block.forward.compute + sparse.forward.compute).value));
  // Of one recomputed layer a stage the kind is that of its first layer.
  plan.recompute = {Recomputation::full, 1};
  const PlanCost again = evaluator.cost(plan);
  CHECK(again.stages[1].layers.again[0] == 1);
  CHECK(again.stages[1].layers.again[1] == 0);
  CHECK(again.stages[2].layers.again[1] == 1);
  // An interleaved schedule holds chunks of either kind: no less than one micro-batch of them all.
  plan = {};
  plan.pp = 2, plan.vpp = 2, plan.schedule = ScheduleKind::interleaved;
  TrainingSpec t = training();
  t.overlap.pp_overlap = true;
  Evaluator chunks(mixed, fixtures::cluster(2), t);
  const PlanCost held = chunks.cost(plan);
  const double kept = 2 * block.footprint.kept.value + 2 * sparse.footprint.kept.value;
  CHECK(held.ranks[0].memory.activations.value > kept);
}

TEST_CASE("a mixture of one expert that every token takes costs its dense layer and a little") {
  ModelSpec one = model();
  one.experts = one.top_k = 1;
  one.ffn_hidden = one.expert_ffn_hidden = 4096;
  const LayerCost sparse = moe(1, 1, 1, one);
  ModelSpec dense = one;
  dense.experts = 0;
  Pricing p;
  const ClusterSpec cluster = fixtures::cluster(16);
  p.cluster = &cluster;
  p.precision = Precision::fp16;
  const LayerCost plain =
      layer_cost(build_layer(LayerKind::block, dense, context(1, 1, 1)), Recomputed::nothing, p);
  CHECK(sparse.forward.compute > plain.forward.compute);
  CHECK(sparse.forward.compute.value < 1.1 * plain.forward.compute.value);
  CHECK(sparse.weights == plain.weights + h);
}

TEST_CASE("what Megatron-LM refuses of experts") {
  const ClusterSpec cluster = fixtures::cluster(16);
  ModelSpec m = model();
  ParallelPlan plan;
  const auto key = [&] {
    plan.dp = 16 / (plan.tp * plan.pp);
    const auto found = violations(plan, m, cluster, training());
    CHECK(found.empty() == is_valid(plan, m, cluster, training()));
    return found.empty() ? std::string() : found.front().key;
  };
  plan.ep = 16;
  CHECK(key() == "");
  plan.ep = 3;
  CHECK(key() == "ep");
  plan.ep = 16, plan.etp = 2;
  CHECK(key() == "ep");
  plan.ep = 4, plan.etp = 3;
  CHECK(key() == "ep");
  plan.tp = 2, plan.etp = 2;
  CHECK(key() == "sequence_parallel");
  plan.sequence_parallel = true;
  CHECK(key() == "");
  plan.tp = 2, plan.pp = 2, plan.etp = 1, plan.rank_order = "tp-cp-ep-pp-dp";
  plan.ep = 4;  // pipelines of experts would be 4 ranks apart, the others' are 2
  CHECK(key() == "rank_order");
  plan.ep = 2;
  CHECK(key() == "");
  plan.pp = 1, plan.ep = 4, plan.etp = 2, plan.rank_order = default_rank_order;
  m.experts = 0;
  CHECK(key() == "ep");
  plan.ep = 1;
  CHECK(key() == "etp");
}

TEST_CASE("biases of experts and their clamp are PyTorch's own kernels in Megatron-LM") {
  ModelSpec biased = model();
  biased.linear_bias = true;
  LayerContext c = context(1, 4, 1);
  const auto passes = [&](const ModelSpec& m, Site site) {
    const OpList list = build_layer(LayerKind::moe, m, c);
    const auto node = std::ranges::find(list.nodes, site, &Node::site);
    return node == list.nodes.end() ? UnfusedPasses{} : std::get<UnfusedPasses>(node->op);
  };
  CHECK(passes(biased, Site::expert_bias).rows == 0);  // other frameworks: in the product
  c.unfused_expert_bias = true;
  CHECK(passes(model(), Site::expert_bias).rows == 0);
  const UnfusedPasses bias = passes(biased, Site::expert_bias);
  CHECK(bias.rows == s * b * k);
  CHECK(bias.cols == h);
  // p · b is written, read and written with the sum, copied and cast: 4 + (2 + 4 + 4) + 8 + (4 +
  // 2).
  CHECK(bias.forward.bytes == 28);
  CHECK(bias.forward.kernels == 2 * (all / 4) + 2);
  const UnfusedPasses clamp = passes(biased, Site::expert_clamp);
  CHECK(clamp.cols == 2 * ffn);
  // p · b and the sum; backward the cast to fp32, p's and b's products with the gradient.
  CHECK(bias.forward.indexed == 2);
  CHECK(bias.backward.indexed == 3);
  CHECK(clamp.forward.bytes == 8);  // read and written by the clamps, and by their concatenation
  // Both halves are clamped in strides: one pass over all. Backward three comparisons (3 bytes) and
  // two choices (5) over halves; two comparisons are joined (3), the halves concatenated (4).
  CHECK(clamp.forward.indexed == 1);
  CHECK(clamp.backward.indexed == 2.5);
  CHECK(clamp.backward.indexed_bytes == (3 * 3 + 2 * 5) / 2.0);
  CHECK(clamp.backward.bytes == clamp.backward.indexed_bytes + 3 / 2.0 + 4);
  // Transformer Engine's fused grouped MLP takes biases and clamps.
  c.fused_grouped_mlp = true;
  const auto fused = [&](const ModelSpec& m) {
    const OpList list = build_layer(LayerKind::moe, m, c);
    const auto node = std::ranges::find(list.nodes, Site::expert_activation, &Node::site);
    return std::get<Activation>(node->op).in_product;
  };
  CHECK(fused(model()));
  CHECK(fused(biased));
  CHECK(passes(biased, Site::expert_bias).rows == 0);
  CHECK(passes(biased, Site::expert_clamp).rows == 0);
}

}  // namespace experts_test
