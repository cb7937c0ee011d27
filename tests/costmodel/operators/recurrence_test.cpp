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
  const OpList whole = list_of(LayerKind::block, mamba()),
               cut = list_of(LayerKind::block, mamba(), 4);
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
  const double whole = weights_of(list_of(LayerKind::block, m)),
               cut = weights_of(list_of(LayerKind::block, m, 2)),
               copied = 512 + 2 * 16 * 512 + 2 * 16 * (4 + 1);
  CHECK(whole == parameters_per_layer(m));
  CHECK(cut == (whole - copied) / 2 + copied);
  const auto scan = [&](int tp) {
    for (const Node& node : list_of(LayerKind::block, m, tp).nodes)
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
  const OpList list = list_of(LayerKind::delta, m);
  CHECK(weights_of(list) ==
        h * (2 * k + 2 * v + 16) + 4 * (2 * k + v) + 16 + 64 + v * h + mlp + 2 * h);
  const double forward = 2 * T * (h * (2 * k + 2 * v + 16) + v * h + mlp) + 8 * T * 8 * 64 * 64;
  CHECK(model_flops(list, LayerKind::delta).full.value == 3 * forward);
  CHECK(m.attention_layers('D', 0, 4) == 3);
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
  CHECK(contains(fault(", attention_pattern: FXF"), "'X' at letter 2 is none of F, S and D"));
  CHECK(contains(fault(", attention_pattern: FSFSF, sliding_window: 8"), "5 letters"));
  CHECK(contains(fault(", attention_pattern: FS"), "lacks the key 'sliding_window'"));
  CHECK(contains(fault(", attention_pattern: F, sliding_window: 8"), "no layer"));
  CHECK(contains(fault(", shared_norm: true"), "shared_norm without parallel_block"));
  CHECK(contains(fault(", qk_norm_whole: true"), "qk_norm_whole without qk_norm"));
}

}  // namespace recurrence_test
