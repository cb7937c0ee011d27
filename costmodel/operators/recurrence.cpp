// Recurrences in place of attention: Mamba-2's scan, Mamba-1's, the gated delta net, Kimi delta
// attention, lightning attention, RWKV-7, LFM2's convolution.
#include <algorithm>

#include "costmodel/operators/layer_builder.hpp"

namespace costmodel {

TensorId LayerBuilder::after_scan(TensorId x) {
  const TensorId normed = norm(Site::scan_norm, x, model_.hidden);
  return residual(Site::residual, join(scan(normed)), x);
}

// Input projection, convolution, scan, gated norm, output projection (arXiv:2405.21060, figure 6).
// Keeps what the authors' memory-efficient kernel keeps: the results of the projection and of the
// scan; backward recomputes the convolution, in addition to what the scan recomputes.
TensorId LayerBuilder::scan(TensorId normed) {
  if (model_.dt_rank > 0) return selective_scan(normed);
  const std::int64_t heads = model_.scan_heads() / context_.tp,
                     groups = std::max<std::int64_t>(1, model_.ssm_groups / context_.tp);
  const std::int64_t inner = heads * model_.scan_head_dim();
  const std::int64_t channels = inner + 2 * groups * model_.state_size;
  const TensorId in =
      linear(Site::scan_in, split(normed), normed, inner + channels + heads, model_.hidden, false);
  const TensorId mixed = add(Site::convolution, Convolution{tokens_, channels, model_.conv_kernel},
                             {in}, tokens_, channels, {in});
  // Megatron-LM's mixer, and Nemotron-H's configuration, take chunks of 128 tokens.
  Scan scan{context_.micro_batch,   context_.sequence, heads,
            model_.scan_head_dim(), model_.state_size, groups};
  if (!model_.layer_pattern.empty()) scan.chunk = 128;
  const TensorId result = add(Site::scan, scan, {mixed, in}, tokens_, inner, {in});
  const TensorId gated =
      model_.scan_output_norm
          ? add(Site::gated_norm, Norm{tokens_, inner, model_.normalization, 1, true}, {result, in},
                tokens_, inner, {result, in})
          : add(Site::scan_gate, Activation{tokens_, inner, true, true}, {result, in}, tokens_,
                inner, {result, in});
  return linear(Site::scan_out, gated, gated, model_.hidden, inner, false);
}

// Mamba-1 (Gu and Dao 2023, arXiv:2312.00752, figure 3). Its kernel keeps the convolution's result
// and its own inputs, and computes the states again. Tensor ranks divide the channels; time step, B
// and C are sums over all of them, an all-reduce there and, as every rank's channels use them, one
// of their gradients back (vllm-project/vllm, model_executor/layers/mamba/mamba_mixer.py: x_proj is
// row-parallel, dt_proj column-parallel). Jamba norms the three sums (transformers,
// JambaMambaMixer).
TensorId LayerBuilder::selective_scan(TensorId normed) {
  const std::int64_t inner = model_.scan_width() / context_.tp, n = model_.state_size;
  const std::int64_t small = model_.dt_rank + 2 * n;
  const TensorId in = linear(Site::scan_in, split(normed), normed, 2 * inner, model_.hidden, false);
  const TensorId mixed = add(Site::convolution, Convolution{tokens_, inner, model_.conv_kernel},
                             {in}, tokens_, inner, {in});
  TensorId low = linear(Site::scan_parameters, mixed, mixed, small, inner, false);
  if (context_.tp > 1) {
    const auto sum = CollectiveKind::all_reduce;
    low = add(Site::scan_parameters_sum,
              Collective{sum, sum, Axis::tensor, size_of(tokens_, small)}, {low}, tokens_, small);
  }
  if (model_.scan_norms) low = norm(Site::scan_parameters_norm, low, small);
  const TensorId step = linear(Site::time_step, low, low, inner, model_.dt_rank, true);
  Scan scan{context_.micro_batch, context_.sequence, inner, 1, n, 1};
  scan.rule = ScanRule::channels;
  const TensorId result = add(Site::scan, scan, {mixed, step, low, in}, tokens_, inner,
                              {mixed, step, low, in});  // gated by the other half of `in`
  return linear(Site::scan_out, result, result, model_.hidden, inner, false);
}

// Falcon-H1's: both read one normed input (transformers, FalconH1DecoderLayer).
TensorId LayerBuilder::attention_and_scan(TensorId normed) {
  const TensorId attended = attention(normed), scanned = scan(normed);
  return add(Site::branch_sum, BiasDropoutAdd{tokens_, model_.hidden, false, false, true},
             {attended, scanned}, tokens_, model_.hidden);
}

TensorId LayerBuilder::gated_out(TensorId result, TensorId gate, const Norm& op,
                                 std::int64_t columns) {
  const TensorId gated =
      add(Site::gated_norm, op, {result, gate}, tokens_, columns, {result, gate});
  return linear(Site::delta_out, gated, gated, model_.hidden, columns, false);
}

// A gated delta net in place of attention (transformers, Qwen3NextGatedDeltaNet; Megatron-LM,
// core/ssm/gated_delta_net.py): queries, keys, values, gate, and two numbers a head from one
// product; convolution of the first three; the delta rule; a norm of each head's values, gated.
TensorId LayerBuilder::delta_net(TensorId normed) {
  const std::int64_t t = context_.tp, heads = model_.linear_num_value_heads / t;
  const std::int64_t k = model_.delta_key_width() / t, v = model_.delta_value_width() / t;
  const std::int64_t columns = 2 * k + 2 * v + 2 * heads, channels = 2 * k + v;
  const std::size_t first = list_.nodes.size();
  const TensorId in = linear(Site::delta_in, split(normed), normed, columns, model_.hidden, false);
  const TensorId mixed =
      add(Site::convolution, Convolution{tokens_, channels, model_.conv_kernel, false}, {in},
          tokens_, channels, {in});
  Scan rule{
      context_.micro_batch,         context_.sequence,          heads,
      model_.linear_value_head_dim, model_.linear_key_head_dim, model_.linear_num_key_heads / t};
  rule.chunk = 64;  // of the authors' kernels (fla-org/flash-linear-attention, gated_delta_rule)
  rule.rule = ScanRule::delta;
  const TensorId result = add(Site::delta_rule, rule, {mixed, in}, tokens_, v, {mixed, in});
  const std::int64_t each = model_.linear_value_head_dim;
  const TensorId out = gated_out(result, in, {tokens_ * heads, each, Normalization::rmsnorm}, v);
  capture(first, GraphScope::attention);
  return out;
}

// Kimi Linear, arXiv:2510.26692, section 3 (fla-org/flash-linear-attention, layers/kda.py): decays
// of every channel of the keys and the gate of the values come through vectors of a head's size,
// which every tensor rank computes of its tokens.
TensorId LayerBuilder::kimi_delta(TensorId normed) {
  const std::int64_t t = context_.tp, heads = model_.linear_num_value_heads / t;
  const std::int64_t k = model_.delta_key_width() / t, v = model_.delta_value_width() / t;
  const std::int64_t d = model_.linear_value_head_dim, channels = 2 * k + v;
  const std::size_t first = list_.nodes.size();
  const TensorId in =
      linear(Site::delta_in, split(normed), normed, channels + heads, model_.hidden, false);
  const TensorId low = latent(Site::delta_gates_down, normed, 2 * d);
  const TensorId gates = linear(Site::delta_gates, split(low), low, k + v, d, false);
  const TensorId mixed =
      add(Site::convolution, Convolution{tokens_, channels, model_.conv_kernel, false}, {in},
          tokens_, channels, {in});
  Scan rule{context_.micro_batch,           context_.sequence, heads, d, model_.linear_key_head_dim,
            model_.linear_num_key_heads / t};
  rule.chunk = 64;
  rule.rule = ScanRule::delta;
  rule.decays = model_.linear_key_head_dim;
  const TensorId result =
      add(Site::delta_rule, rule, {mixed, gates, in}, tokens_, v, {mixed, gates, in});
  const TensorId out = gated_out(result, gates, {tokens_ * heads, d, Normalization::rmsnorm}, v);
  capture(first, GraphScope::attention);
  return out;
}

// MiniMax-01, arXiv:2501.08313, section 2.2: queries, keys, values and gate of every head, SiLU of
// the first three, a scan with one decay a head, a norm of its result times the gate.
TensorId LayerBuilder::lightning(TensorId normed) {
  const std::int64_t heads = model_.heads / context_.tp, d = model_.head_dim, inner = heads * d;
  const TensorId in =
      linear(Site::delta_in, split(normed), normed, 4 * inner, model_.hidden, false);
  const TensorId mixed = add(Site::activation, Activation{tokens_, 3 * inner, false, true}, {in},
                             tokens_, 3 * inner, {in});
  Scan rule{context_.micro_batch, context_.sequence, heads, d, d, heads};
  rule.rule = ScanRule::linear;
  const TensorId result = add(Site::delta_rule, rule, {mixed}, tokens_, inner, {mixed});
  return gated_out(result, in, {tokens_, inner, Normalization::rmsnorm, 1, true}, inner);
}

// arXiv:2503.14456, section 4: a token is mixed with the one before it in six ways, and in a
// seventh before the MLP; decay, rate, value and gate go through products of low rank, which every
// tensor rank computes in full; then vectors of each channel (three biases, two weights of
// keys, the bonus), the generalised delta rule, a norm of each head and the gate.
TensorId LayerBuilder::rwkv(TensorId normed) {
  const std::int64_t h = model_.hidden, inner = h / context_.tp, d = model_.head_dim;
  const std::int64_t ranks = model_.rwkv_decay_rank + model_.rwkv_rate_rank +
                             model_.rwkv_value_rank + model_.rwkv_gate_rank;
  const TensorId shifted = add(Site::token_shift, Convolution{tokens_, 7 * h, 1, false},
                               {split(normed)}, tokens_, 6 * h, {normed});
  const TensorId in = linear(Site::delta_in, shifted, shifted, 3 * inner, h, false);
  const TensorId low = linear(Site::delta_gates_down, shifted, shifted, ranks, h, false);
  // Four products, whose columns together read each of the ranks once.
  const TensorId gates = add(Site::delta_gates, Linear{tokens_, inner, ranks, false, false}, {low},
                             tokens_, 4 * inner, {low});
  Scan rule{context_.micro_batch, context_.sequence, inner / d, d, d, inner / d};
  rule.chunk = 64;
  rule.rule = ScanRule::rwkv;
  rule.decays = d;
  const TensorId keys = add(Site::channel_weights, Convolution{tokens_, inner, 6, false},
                            {in, gates}, tokens_, 4 * inner, {in, gates});
  const TensorId result = add(Site::delta_rule, rule, {keys}, tokens_, inner, {keys});
  return gated_out(result, gates, {tokens_, inner, Normalization::layernorm}, inner);
}

// LFM2's mixer (transformers, Lfm2ShortConv): both gates and the input from one product, the input
// times the first gate, a convolution of every channel, its result times the second gate.
TensorId LayerBuilder::short_convolution(TensorId normed) {
  const std::int64_t inner = model_.hidden / context_.tp;
  const Activation gate{tokens_, inner, true, true};
  const TensorId in = linear(Site::scan_in, split(normed), normed, 3 * inner, model_.hidden, false);
  const TensorId gated = add(Site::scan_gate, gate, {in}, tokens_, inner, {in});
  const TensorId mixed =
      add(Site::convolution, Convolution{tokens_, inner, model_.conv_kernel, false}, {gated},
          tokens_, inner, {gated});
  const TensorId result = add(Site::scan_gate, gate, {mixed, in}, tokens_, inner, {mixed, in});
  return linear(Site::scan_out, result, result, model_.hidden, inner, false);
}

}  // namespace costmodel
