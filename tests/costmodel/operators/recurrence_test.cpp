// Mamba-1, the gated delta net and attention with a window, against hand counts.
#include <doctest/doctest.h>

#include <string>

#include "costmodel/config/yaml.hpp"
#include "costmodel/estimate/model_flops.hpp"
#include "costmodel/model/model_reader.hpp"
#include "costmodel/model/parameter_count.hpp"
#include "costmodel/operators/transformer.hpp"
#include "tests/costmodel/support/fixtures.hpp"

namespace recurrence_test {

using namespace costmodel;

namespace {

ModelSpec parsed(const std::string& yaml) { return read_model(parse_yaml(yaml, "m.yaml"), ""); }

ModelSpec mamba() {
  return parsed(
      "{kind: mamba, layers: 4, hidden: 512, heads: 1024, head_dim: 1, state_size: 16, "
      "dt_rank: 32, vocab: 1024}");
}

ModelSpec llama(const std::string& more) {
  return parsed(
      "{kind: llama, layers: 4, hidden: 512, heads: 8, kv_heads: 8, ffn_hidden: 1024, "
      "vocab: 1024, dropout: 0" +
      more + "}");
}

const char* const delta =
    ", attention_pattern: DDDF, linear_num_key_heads: 4, linear_num_value_heads: 8, "
    "linear_key_head_dim: 64, linear_value_head_dim: 64";

OpList list_of(LayerKind kind, const ModelSpec& m, int tp = 1) {
  return build_layer(kind, m, fixtures::layer_context(tp, false, 1, 2048));
}

}  // namespace

TEST_CASE("Mamba-1: channels are cut over tensor ranks, which sum the time step, B and C") {
  const OpList whole = list_of(mamba().blocks().front(), mamba()),
               cut = list_of(mamba().blocks().front(), mamba(), 4);
  CHECK(weights_of(whole) == parameters_per_layer(mamba()));
  CHECK(weights_of(cut) == (weights_of(whole) - 512) / 4 + 512);  // but for the layer's norm
  int sums = 0;
  for (const Node& node : cut.nodes) {
    if (node.site != Site::scan_parameters_sum) continue;
    ++sums;
    const auto& op = std::get<Collective>(node.op);
    CHECK(op.forward == CollectiveKind::all_reduce);
    CHECK(op.bytes.value == 2048.0 * (32 + 2 * 16) * 2);
  }
  CHECK(sums == 1);
}

// Of two tensor ranks each has half the heads, and the only group's B and C, with their part of the
// projection (a norm and 2 x 16 rows of 512) and of the convolution (4 taps and a bias a channel).
TEST_CASE("Mamba-2 with copied scan groups: ranks divide the heads and copy B and C") {
  const ModelSpec m = parsed(
      "{kind: mamba, layers: 4, hidden: 512, heads: 16, head_dim: 64, state_size: 16, vocab: "
      "1024}");
  const double whole = weights_of(list_of(m.blocks().front(), m)),
               cut = weights_of(list_of(m.blocks().front(), m, 2)),
               copied = 512 + 2 * 16 * 512 + 2 * 16 * (4 + 1);
  CHECK(whole == parameters_per_layer(m));
  CHECK(cut == (whole - copied) / 2 + copied);
  const auto scan = [&](int tp) {
    for (const Node& node : list_of(m.blocks().front(), m, tp).nodes)
      if (node.site == Site::scan) return std::get<Scan>(node.op);
    return Scan{};
  };
  CHECK(scan(1).heads == 2 * scan(2).heads);
  CHECK(scan(1).groups == 1);
  CHECK(scan(2).groups == 1);
}

// Megatron-LM, num_floating_point_operations: in and out projections, and 8 of the state a token.
// It counts the convolution too, 8 FLOPs a channel, which is no product here.
TEST_CASE("a gated delta net: parameters and model FLOPs") {
  const ModelSpec m = llama(delta);
  const double k = 4 * 64, v = 8 * 64, h = 512, T = 2048, mlp = 3 * h * 1024;
  const LayerKind kind = Block{Mixer::delta, FeedForward::dense};
  const OpList list = list_of(kind, m);
  CHECK(weights_of(list) ==
        h * (2 * k + 2 * v + 16) + 4 * (2 * k + v) + 16 + 64 + v * h + mlp + 2 * h);
  const double forward = 2 * T * (h * (2 * k + 2 * v + 16) + v * h + mlp) + 8 * T * 8 * 64 * 64;
  CHECK(model_flops(list, kind).full.value == 3 * forward);
  std::string letters;
  for (std::int64_t layer = 0; layer < m.layers; ++layer) letters += m.attention_at(layer);
  CHECK(letters == "DDDF");
}

// Of every tensor rank: its heads' part of all but the low-rank products down, which it has in
// full.
TEST_CASE("Kimi delta attention: parameters, full and cut, and model FLOPs as a delta net's") {
  const ModelSpec m = llama(
      ", attention_pattern: K, linear_num_key_heads: 8, linear_num_value_heads: 8, "
      "linear_key_head_dim: 64, linear_value_head_dim: 64");
  const double w = 8 * 64, h = 512, d = 64, T = 2048, mlp = 3 * h * 1024, norms = 2 * h;
  const double down = h * 2 * d;
  const double cut = h * (3 * w + 8) + d * 2 * w + 4 * 3 * w + 8 + w + w * h;
  const LayerKind kind = m.blocks().front();
  CHECK(weights_of(list_of(kind, m)) == cut + down + d + mlp + norms);
  CHECK(weights_of(list_of(kind, m, 4)) == (cut + mlp) / 4 + down + d + norms);
  const double products = h * (3 * w + 8) + down + d * 2 * w + w * h + mlp;
  CHECK(model_flops(list_of(kind, m), kind).full.value ==
        3 * (2 * T * products + 8 * T * 8 * 64 * 64));
}

// Its state is written and read once a token: 4 FLOPs of each of its numbers.
TEST_CASE("lightning attention: five products of the width of all heads, and a norm") {
  const ModelSpec m = llama(", attention_pattern: L");
  const double h = 512, T = 2048, mlp = 3 * h * 1024;
  const LayerKind kind = m.blocks().front();
  CHECK(weights_of(list_of(kind, m)) == 5 * h * h + h + mlp + 2 * h);
  CHECK(model_flops(list_of(kind, m), kind).full.value ==
        3 * (2 * T * (5 * h * h + mlp) + 4 * T * h * 64));
}

TEST_CASE("RWKV-7: four products, four of low rank there and back, fifteen vectors") {
  const ModelSpec m = llama(
      ", attention_pattern: R, rwkv_decay_rank: 96, rwkv_rate_rank: 64, rwkv_value_rank: 32, "
      "rwkv_gate_rank: 128");
  const double h = 512, ranks = 96 + 64 + 32 + 128, mlp = 3 * h * 1024;
  CHECK(weights_of(list_of(m.blocks().front(), m)) ==
        4 * h * h + 2 * h * ranks + 15 * h + mlp + 2 * h);
}

TEST_CASE("attention and a scan in parallel have one norm; a scan has experts after it") {
  const std::string scan = ", mamba_heads: 16, mamba_head_dim: 64, state_size: 16";
  const auto weights = [&](const std::string& more) {
    const ModelSpec m = llama(more);
    return weights_of(list_of(m.blocks().front(), m));
  };
  const double plain = weights(""), both = weights(", attention_pattern: P" + scan),
               alone = weights(", attention_pattern: M" + scan);
  const double norms = 2 * 512, mlp = 3 * 512.0 * 1024;
  CHECK(both == plain + alone - mlp - norms);
  CHECK(weights(", attention_pattern: M, scan_output_norm: false" + scan) == alone - 1024);
}

TEST_CASE("a chunk cuts attention's FLOPs to those of sequences of its length") {
  const ModelSpec m = llama(", attention_pattern: C, attention_chunk: 512");
  const auto flops = [](const OpList& list) {
    return model_flops(list, LayerKind::block).executed.value;
  };
  LayerContext context = fixtures::layer_context(1, false, 1, 2048);
  context.attention = AttentionKernel::flash;
  const double chunked = flops(build_layer(m.blocks().front(), m, context));
  context.micro_batch = 4, context.sequence = 512;
  const double shorter = flops(build_layer(LayerKind::block, llama(""), context));
  CHECK(chunked == doctest::Approx(shorter));
}

TEST_CASE("a window cuts attention's FLOPs; one as long as the sequence changes nothing") {
  const auto scores = [](const ModelSpec& m) {
    return model_flops(list_of(LayerKind::block, m), LayerKind::block);
  };
  const ModelFlops full = scores(llama("")), wide = scores(llama(", sliding_window: 2048"));
  CHECK(full.full.value == wide.full.value);
  CHECK(full.causal.value == wide.causal.value);
  const ModelFlops cut = scores(llama(", sliding_window: 256"));
  const double core = 12.0 * 2048 * 512;  // of each key that a query reaches
  CHECK(full.full.value - cut.full.value == doctest::Approx(core * (2048 - 256)));
  // Rows of 256 keys but for the first, which grow to that.
  const double left = core * 256 * (1 - 256 / (2 * 2048.0));
  CHECK(full.causal.value - cut.causal.value == doctest::Approx(core * 2048 / 2 - left));
}

TEST_CASE("sinks are a logit a head, a gate is as wide as the queries") {
  const auto weights = [](const ModelSpec& m) { return weights_of(list_of(LayerKind::block, m)); };
  CHECK(weights(llama(", attention_sinks: true")) == weights(llama("")) + 8);
  CHECK(weights(llama(", attention_gate: true")) == weights(llama("")) + 512 * 512);
}

TEST_CASE("patterns that make no sense are refused") {
  const auto fault = [](const std::string& more) {
    return fixtures::config_error([&] { llama(more); });
  };
  using fixtures::contains;
  CHECK(contains(fault(", attention_pattern: FXF"), "'X' at letter 2 is none of FSDC"));
  CHECK(contains(fault(", attention_pattern: FSFSF, sliding_window: 8"), "5 letters"));
  CHECK(contains(fault(", attention_pattern: FS"), "lacks the key 'sliding_window'"));
  CHECK(contains(fault(", attention_pattern: F, sliding_window: 8"), "no layer"));
  CHECK(contains(fault(", shared_norm: true"), "shared_norm without parallel_block"));
  CHECK(contains(fault(", qk_norm_whole: true"), "qk_norm_whole without qk_norm"));
}

}  // namespace recurrence_test
