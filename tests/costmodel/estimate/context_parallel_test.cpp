// Context parallelism against its papers: ring attention (Liu et al. 2023, arXiv:2310.01889),
// DeepSpeed-Ulysses (Jacobs et al. 2023, arXiv:2309.14509), gathered keys (arXiv:2407.21783).
#include <doctest/doctest.h>

#include <algorithm>

#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/operators/transformer.hpp"
#include "costmodel/plan/mesh.hpp"
#include "tests/costmodel/support/fixtures.hpp"

namespace context_parallel_test {

using namespace costmodel;
using fixtures::relative_error;

namespace {

constexpr std::int64_t s = 8192, b = 2, heads = 32, kv_heads = 8, head_dim = 64;
constexpr int sizes[] = {2, 4, 8};
constexpr ContextExchange exchanges[] = {ContextExchange::p2p, ContextExchange::a2a,
                                         ContextExchange::all_gather};

ModelSpec model() {
  ModelSpec m = fixtures::gpt(4, heads * head_dim, heads, 51200, s);
  m.kv_heads = kv_heads;
  return m;
}

LayerContext context(int cp, ContextExchange exchange) {
  LayerContext c = fixtures::layer_context(1, false, b, s);
  c.cp = cp;
  c.cp_comm = exchange;
  c.attention = AttentionKernel::flash;
  return c;
}

Pricing pricing(int cp, const ClusterSpec& cluster) {
  Pricing p;
  p.cluster = &cluster;
  p.tp_group = layout_of(1, 1, cluster);
  p.cp_group = layout_of(cp, 1, cluster);
  p.precision = Precision::fp16;
  return p;
}

LayerCost block(int cp, ContextExchange exchange, Recomputed what = Recomputed::nothing) {
  static const ClusterSpec cluster = fixtures::cluster(16);
  return layer_cost(build_layer(LayerKind::block, model(), context(cp, exchange)), what,
                    pricing(cp, cluster));
}

TrainingSpec training() {
  TrainingSpec t = fixtures::training(16, s);
  t.stack.kernels.attention = AttentionKernel::flash;
  t.stack.offers.context_parallel = true;
  return t;
}

Estimate estimated(const ParallelPlan& plan) {
  const ClusterSpec cluster = fixtures::cluster(plan.devices());
  REQUIRE(violations(plan, model(), cluster, training()).empty());
  return Evaluator(model(), cluster, training()).estimate(plan);
}

constexpr double element = 2;
constexpr double kv_bytes = 2.0 * b * s * kv_heads * head_dim * element;  // K and V, whole sequence
constexpr double q_bytes = 1.0 * b * s * heads * head_dim * element;

}  // namespace

TEST_CASE("ring attention: c - 1 blocks of K and V forward, and as many of K, V, dK, dV backward") {
  for (const int c : sizes) {
    const LayerCost cost = block(c, ContextExchange::p2p);
    const double block_bytes = kv_bytes / c;
    CHECK(cost.forward.traffic.send.value == (c - 1) * block_bytes);
    CHECK(cost.backward.traffic.send.value == 2 * (c - 1) * block_bytes);
    CHECK(cost.forward.traffic.total().value == cost.forward.traffic.send.value);
    // Selective recomputation runs the ring again.
    CHECK(block(c, ContextExchange::p2p, Recomputed::attention_core).recompute.traffic.send.value ==
          (c - 1) * block_bytes);
  }
}

TEST_CASE("Ulysses: all-to-alls of Q, K, V and the result, each way (c-1)/c of a rank's share") {
  for (const int c : sizes) {
    const LayerCost cost = block(c, ContextExchange::a2a);
    const double share = (2 * q_bytes + kv_bytes) / c * (c - 1) / c;
    CHECK(cost.forward.traffic.all_to_all.value == share);
    CHECK(cost.backward.traffic.all_to_all.value == share);
    const OpList list = build_layer(LayerKind::block, model(), context(c, ContextExchange::a2a));
    const auto exchanged = std::count_if(list.nodes.begin(), list.nodes.end(), [](const Node& n) {
      return std::holds_alternative<Collective>(n.op);
    });
    CHECK(exchanged == 4);
  }
}

TEST_CASE("gathered keys: one all-gather forward; again, and a reduce-scatter, backward") {
  for (const int c : sizes) {
    const LayerCost cost = block(c, ContextExchange::all_gather);
    const double share = kv_bytes * (c - 1) / c;
    CHECK(cost.forward.traffic.all_gather.value == share);
    CHECK(cost.forward.traffic.total().value == share);
    CHECK(cost.backward.traffic.all_gather.value == share);
    CHECK(cost.backward.traffic.reduce_scatter.value == share);
  }
}

TEST_CASE("a rank does 1/c of the work and holds all of the weights") {
  const LayerCost whole = block(1, ContextExchange::p2p);
  for (const auto exchange : exchanges) {
    for (const int c : sizes) {
      const LayerCost part = block(c, exchange);
      CHECK(part.forward.model.value * c == whole.forward.model.value);
      CHECK(part.backward.model.value * c == whole.backward.model.value);
      CHECK(part.forward.executed.value * c == whole.forward.executed.value);
      CHECK(part.weights == whole.weights);
    }
  }
}

TEST_CASE("activations scale with 1/c; an all-to-all keeps its result beside attention's") {
  for (const auto what :
       {Recomputed::nothing, Recomputed::attention_core, Recomputed::everything}) {
    const double whole = block(1, ContextExchange::p2p, what).footprint.kept.value;
    for (const int c : sizes) {
      CHECK(block(c, ContextExchange::p2p, what).footprint.kept.value * c == whole);
      CHECK(block(c, ContextExchange::all_gather, what).footprint.kept.value * c == whole);
    }
  }
  const double whole = block(1, ContextExchange::p2p).footprint.kept.value;
  for (const int c : sizes)
    CHECK(block(c, ContextExchange::a2a).footprint.kept.value * c == whole + q_bytes);
}

TEST_CASE("keys of other ranks are in memory while attention runs") {
  ModelSpec all_heads = model();
  all_heads.kv_heads = heads;
  const auto peak = [&](ContextExchange exchange) {
    const Footprint f = footprint(build_layer(LayerKind::block, all_heads, context(8, exchange)),
                                  Recomputed::nothing);
    return f.kept.value + f.backward_transient.value;
  };
  const double gathered = 2 * q_bytes;                       // K and V of as many heads as Q
  CHECK(peak(ContextExchange::all_gather) >= 2 * gathered);  // and their gradients
  CHECK(peak(ContextExchange::all_gather) - peak(ContextExchange::p2p) > gathered / 2);
}

TEST_CASE("a ring hides each transfer behind the block before it") {
  const double slow = overlap_slowdown - 1;
  CHECK(exposed_ring(Seconds(6), Seconds(16), 3).value ==
        doctest::Approx(3 * slow * 2));  // 2 a transfer, 4 a block
  CHECK(exposed_ring(Seconds(18), Seconds(16), 3).value == doctest::Approx(3 * (2 + slow * 4)));
  CHECK(exposed_ring(Seconds(18), Seconds(0), 3).value == doctest::Approx(18));
  const ClusterSpec cluster = fixtures::cluster(64);
  for (const int c : {2, 8, 16}) {
    const GroupLayout group = layout_of(c, 2, cluster);
    const Seconds step = transfer_time(Bytes(1e8), c > 4 ? 1 : 0, 2, cluster);
    CHECK(
        relative_error(collective_time(CollectiveKind::ring, Bytes(1e8 * c), group, cluster).value,
                       (c - 1) * step.value) < 1e-12);
  }
  // Nothing hides the other two.
  ClusterSpec fast = fixtures::cluster(16), halved = fast;
  for (Tier& tier : halved.tiers) tier.bandwidth = BytesPerSecond(tier.bandwidth.value / 2);
  for (const auto exchange : exchanges) {
    const OpList list = build_layer(LayerKind::block, model(), context(8, exchange));
    const auto exposed = [&](const ClusterSpec& network) {
      return layer_cost(list, Recomputed::nothing, pricing(8, network)).forward.cp_comm;
    };
    CHECK(exposed(fast).value > 0);
    CHECK(exposed(halved) > exposed(fast));
  }
  const auto exposed = [&](ContextExchange exchange) {
    const OpList list = build_layer(LayerKind::block, model(), context(8, exchange));
    return layer_cost(list, Recomputed::nothing, pricing(8, fast)).forward.cp_comm;
  };
  CHECK(exposed(ContextExchange::p2p) < exposed(ContextExchange::all_gather));
}

TEST_CASE("ranks of one sequence are neighbours; replicas are dp x cp") {
  const ClusterSpec cluster = fixtures::cluster(64);
  ParallelPlan plan;
  plan.tp = 2, plan.cp = 4, plan.dp = 4, plan.pp = 2;
  const Mesh mesh(plan);
  CHECK(mesh.stride(Axis::context) == 2);
  CHECK(mesh.stride(Axis::data) == 8);
  CHECK(mesh.stride(Axis::pipeline) == 32);
  CHECK(mesh.group(Axis::context, 1) == std::vector<std::int64_t>{1, 3, 5, 7});
  CHECK(mesh.layout(Axis::context, cluster).outermost() == 0);
  const GroupLayout replicas = mesh.replica_layout(cluster);
  CHECK(replicas.size == 16);
  CHECK(replicas.fan[0] == 4);
  CHECK(replicas.fan[1] == 4);
  plan.rank_order = "tp-cp-ep-pp-dp";  // the pipeline lies between the two
  const GroupLayout apart = Mesh(plan).replica_layout(cluster);
  CHECK(apart.size == 16);
  CHECK(apart.fan[0] == 4);
  CHECK(apart.fan[1] == 4);
}

TEST_CASE("gradients, ZeRO and parameters do not tell cp from dp; the batch does") {
  ParallelPlan data, both;
  data.dp = 8, data.zero = 1;
  both.dp = 2, both.cp = 4, both.zero = 1;
  const Estimate a = estimated(data), c = estimated(both);
  CHECK(c.micro_batches == 8);
  CHECK(a.micro_batches == 2);
  CHECK(c.parameters == a.parameters);
  CHECK(c.model_flops.value == a.model_flops.value);
  CHECK(c.hardware_flops.value == a.hardware_flops.value);
  CHECK(c.memory[0].optimizer.value == a.memory[0].optimizer.value);
  CHECK(c.memory[0].weights.value == a.memory[0].weights.value);
  CHECK(c.traffic.reduce_scatter.value == a.traffic.reduce_scatter.value);
  CHECK(c.traffic.all_gather.value == a.traffic.all_gather.value);
  CHECK(c.breakdown.cp_comm.value > 0);
  CHECK(a.breakdown.cp_comm.value == 0);
  CHECK(relative_error(c.breakdown.total().value, c.iteration.value) < 1e-12);
  // Loss and embedding are cut too: one micro-batch keeps a quarter.
  CHECK(c.memory[0].activations.value < 0.3 * a.memory[0].activations.value);
}

TEST_CASE("what Megatron-LM and Transformer Engine refuse") {
  const ClusterSpec cluster = fixtures::cluster(16);
  TrainingSpec t = training();
  ParallelPlan plan;
  const auto key = [&] {
    plan.dp = static_cast<int>(16 / (plan.tp * plan.cp));
    const auto found = violations(plan, model(), cluster, t);
    CHECK(found.empty() == is_valid(plan, model(), cluster, t));
    return found.empty() ? std::string() : found.front().key;
  };
  plan.cp = 4;
  CHECK(key() == "");
  t.sequence = 8192 - 4;  // 4 divides it, 2 x 4 does not
  CHECK(key() == "cp");
  t.sequence = 8;
  plan.tp = 4, plan.sequence_parallel = true;
  CHECK(key() == "sequence_parallel");
  t = training();
  CHECK(key() == "");
  plan.cp_comm = ContextExchange::a2a;  // tp 4 leaves 2 of the 8 key/value heads
  CHECK(key() == "cp_comm");
  plan.cp = 2;
  CHECK(key() == "");
  t.stack.kernels.attention = AttentionKernel::unfused;
  CHECK(key() == "cp");
  t = training();
  t.stack.offers.context_parallel = false;
  CHECK(key() == "cp");
}

}  // namespace context_parallel_test
