// Multi-head latent attention (DeepSeek-V2, arXiv:2405.04434, section 2.1) against hand counts.
#include <doctest/doctest.h>

#include "costmodel/cost/layer_cost.hpp"
#include "costmodel/estimate/model_flops.hpp"
#include "costmodel/model/parameter_count.hpp"
#include "costmodel/operators/transformer.hpp"
#include "tests/costmodel/support/fixtures.hpp"

namespace latent_attention_test {

using namespace costmodel;

namespace {

constexpr std::int64_t s = 1024, b = 2, h = 2048, a = 16, f = 4096;
constexpr std::int64_t q_rank = 768, kv_rank = 256, nope = 128, rope = 64, v = 128;
constexpr double T = 1.0 * s * b, element = 2;

ModelSpec model() {
  ModelSpec m = fixtures::gpt(1, h, a, 51200, s);
  m.normalization = Normalization::rmsnorm;
  m.positions = Positions::rotary;
  m.gated_mlp = true;
  m.linear_bias = m.qkv_bias = false;
  m.dropout = 0;
  m.ffn_hidden = f;
  m.q_lora_rank = q_rank, m.kv_lora_rank = kv_rank;
  m.qk_head_dim = nope, m.qk_pos_emb_head_dim = rope, m.v_head_dim = v;
  m.head_dim = nope + rope;
  return m;
}

LayerContext context(int tp, int cp = 1) {
  LayerContext c = fixtures::layer_context(tp, tp > 1, b, s);
  c.cp = cp;
  c.attention = AttentionKernel::flash;
  return c;
}

LayerCost block(int tp, int cp = 1, const ModelSpec& m = model()) {
  static const ClusterSpec cluster = fixtures::cluster(16);
  Pricing p;
  p.cluster = &cluster;
  p.tp_group = layout_of(tp, 1, cluster);
  p.cp_group = layout_of(cp, tp, cluster);
  p.precision = Precision::fp16;
  return layer_cost(build_layer(LayerKind::block, m, context(tp, cp)), Recomputed::nothing, p);
}

constexpr double q_columns = 1.0 * a * (nope + rope);
constexpr double mlp = 3.0 * h * f;
constexpr double down = 1.0 * h * (q_rank + kv_rank + rope);
constexpr double up = q_rank * q_columns + 1.0 * kv_rank * a * (nope + v);
constexpr double out = 1.0 * a * v * h;

}  // namespace

TEST_CASE("parameters: down to the latent vectors, up to the heads, out") {
  const double norms = q_rank + kv_rank + 2.0 * h;
  CHECK(block(1).weights == down + up + out + mlp + norms);
  CHECK(parameters_per_layer(model()) == block(1).weights);
  // The way down is whole on every tensor rank, the rest is cut.
  CHECK(block(4).weights == down + (up + out + mlp) / 4 + norms);
  ModelSpec direct = model();  // DeepSeek-V2-Lite: queries straight from the hidden state
  direct.q_lora_rank = 0;
  CHECK(block(1, 1, direct).weights ==
        down - 1.0 * h * q_rank + up + (h - q_rank) * q_columns + out + mlp + norms - q_rank);
  CHECK(parameters_per_layer(direct) == block(1, 1, direct).weights);
}

TEST_CASE("model FLOPs: six times the matrices, and scores wider than their context") {
  const LayerCost cost = block(1);
  const double products = 6 * T * (down + up + out + mlp);
  const double core = 6.0 * b * s * s * a * (nope + rope + v);
  CHECK(cost.forward.model.value + cost.backward.model.value == products + core);
}

// arXiv:2512.02556, section 2.1: the indexer's heads score all keys; attention reaches as many as
// they choose. Every tensor rank has the full indexer.
TEST_CASE("sparse attention: an indexer's parameters and FLOPs, and attention to what it chooses") {
  constexpr double heads = 8, size = 64, chosen = 256;
  ModelSpec m = model();
  m.attention_pattern = "I";
  m.index_heads = 8, m.index_head_dim = 64, m.index_topk = 256;
  const double products = q_rank * heads * size + 1.0 * h * size + 1.0 * h * heads;
  const LayerKind kind = m.blocks().front();
  const OpList list = build_layer(kind, m, context(1));
  CHECK(weights_of(list) == block(1).weights + products + 2 * size);
  CHECK(weights_of(build_layer(kind, m, context(4))) == block(4).weights + products + 2 * size);
  const double core = 6.0 * b * s * chosen * a * (nope + rope + v);
  const double scores = 6.0 * b * s * s * heads * size;
  CHECK(model_flops(list, kind).full.value ==
        6 * T * (down + up + out + mlp + products) + core + scores);
  const double left = 1 - chosen / (2.0 * s);  // of rows that a causal mask cuts to 256 keys
  CHECK(model_flops(list, kind).causal.value ==
        doctest::Approx(6 * T * (down + up + out + mlp + products) + core * left + scores / 2));
}

TEST_CASE("what a layer keeps: latent vectors, heads, and the usual") {
  const double attention = 2.0 * h + 2 * q_rank + (kv_rank + rope) + kv_rank + 2 * q_columns +
                           2.0 * a * v;  // norm in and out, latents, Q K V, result
  CHECK(block(1).footprint.kept_activations.value == element * T * (attention + 2 * h + 3 * f));
}

TEST_CASE("sequence parallelism gathers latent vectors, not hidden states") {
  for (const int t : {2, 4}) {
    const double share = element * T * (t - 1) / t;
    const Traffic forward = block(t).forward.traffic;
    CHECK(forward.all_gather.value == share * (q_rank + kv_rank + rope + h));
    CHECK(forward.reduce_scatter.value == share * 2 * h);
  }
}

TEST_CASE("a ring carries keys and values of all heads, wider keys than values") {
  const Traffic forward = block(1, 4).forward.traffic;
  CHECK(forward.send.value == element * T * (q_columns + a * v) * 3 / 4);
  CHECK(block(1, 4).footprint.kept.value * 4 == block(1).footprint.kept.value);
}

}  // namespace latent_attention_test
