// Layers with a recurrence in place of attention: Mamba-2's scan, Mamba-1's, the gated delta net.
#include <algorithm>

#include "costmodel/operators/layer_builder.hpp"

namespace costmodel {

// Norm, input projection, convolution, scan, gated norm, output projection (arXiv:2405.21060,
// figure 6). Keeps what the authors' memory-efficient kernel keeps: the results of the projection
// and of the scan; backward recomputes the convolution, in addition to what the scan recomputes.
OpList LayerBuilder::scan_layer() {
  if (model_.dt_rank > 0) return selective_scan_layer();
  const std::int64_t heads = model_.scan_heads() / context_.tp,
                     groups = std::max<std::int64_t>(1, model_.ssm_groups / context_.tp);
  const std::int64_t inner = heads * model_.scan_head_dim();
  const std::int64_t channels = inner + 2 * groups * model_.state_size;
  const TensorId x = layer_input();
  const TensorId normed = norm(Site::scan_norm, x, model_.hidden);
  const TensorId in =
      linear(Site::scan_in, split(normed), normed, inner + channels + heads, model_.hidden, false);
  const TensorId mixed = add(Site::convolution, Convolution{tokens_, channels, model_.conv_kernel},
                             {in}, tokens_, channels, {in});
  // Megatron-LM's mixer, and Nemotron-H's configuration, take chunks of 128 tokens.
  Scan scan{context_.micro_batch,   context_.sequence, heads,
            model_.scan_head_dim(), model_.state_size, groups};
  if (!model_.layer_pattern.empty()) scan.chunk = 128;
  const TensorId result = add(Site::scan, scan, {mixed, in}, tokens_, inner, {in});
  const TensorId gated = add(Site::gated_norm, Norm{tokens_, inner, model_.normalization, 1, true},
                             {result, in}, tokens_, inner, {result, in});
  const TensorId out = linear(Site::scan_out, gated, gated, model_.hidden, inner, false);
  return finish(x, residual(Site::residual, join(out), x));
}

// Mamba-1 (Gu and Dao 2023, arXiv:2312.00752, figure 3). Its kernel keeps the convolution's result
// and its own inputs, and computes the states again. Tensor ranks divide the channels; time step, B
// and C are sums over all of them, an all-reduce there and, as every rank's channels use them, one
// of their gradients back (vllm-project/vllm, model_executor/layers/mamba/mamba_mixer.py: x_proj is
// row-parallel, dt_proj column-parallel).
OpList LayerBuilder::selective_scan_layer() {
  const std::int64_t inner = model_.scan_width() / context_.tp, n = model_.state_size;
  const std::int64_t small = model_.dt_rank + 2 * n;
  const TensorId x = layer_input();
  const TensorId normed = norm(Site::scan_norm, x, model_.hidden);
  const TensorId in = linear(Site::scan_in, split(normed), normed, 2 * inner, model_.hidden, false);
  const TensorId mixed = add(Site::convolution, Convolution{tokens_, inner, model_.conv_kernel},
                             {in}, tokens_, inner, {in});
  TensorId low = linear(Site::scan_parameters, mixed, mixed, small, inner, false);
  if (context_.tp > 1) {
    const auto sum = CollectiveKind::all_reduce;
    low = add(Site::scan_parameters_sum,
              Collective{sum, sum, Axis::tensor, size_of(tokens_, small)}, {low}, tokens_, small);
  }
  const TensorId step = linear(Site::time_step, low, low, inner, model_.dt_rank, true);
  Scan scan{context_.micro_batch, context_.sequence, inner, 1, n, 1};
  scan.rule = ScanRule::channels;
  const TensorId result = add(Site::scan, scan, {mixed, step, low, in}, tokens_, inner,
                              {mixed, step, low, in});  // gated by the other half of `in`
  const TensorId out = linear(Site::scan_out, result, result, model_.hidden, inner, false);
  return finish(x, residual(Site::residual, join(out), x));
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
  const TensorId gated = add(Site::gated_norm, Norm{tokens_ * heads, each, Normalization::rmsnorm},
                             {result, in}, tokens_, v, {result, in});
  const TensorId out = linear(Site::delta_out, gated, gated, model_.hidden, v, false);
  for (std::size_t i = first; i < list_.nodes.size(); ++i)
    list_.nodes[i].scope = GraphScope::attention;
  return out;
}

}  // namespace costmodel
