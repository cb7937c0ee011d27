// A mixture of experts: routing, dispatch, grouped products, combine.
#include <algorithm>

#include "costmodel/operators/layer_builder.hpp"

namespace costmodel {

TensorId LayerBuilder::experts(TensorId x, TensorId scored) {
  const std::int64_t tokens = local_tokens_, h = model_.expert_width(), k = model_.top_k;
  const std::size_t first = list_.nodes.size();
  const TensorId scores = add(Site::router,
                              Linear{.m = tokens,
                                     .n = model_.experts,
                                     .k = model_.hidden,
                                     .bias = model_.linear_bias || model_.expert_norms,
                                     .regather = false,
                                     .wide = true},
                              {scored}, tokens, model_.experts, {scored});
  const TensorId chosen =
      tensor("probabilities", tokens, model_.experts, TensorRole::activation, 4);
  list_.nodes.push_back(
      {Site::top_k_routing, Routing{tokens, model_.experts, k}, {scores}, chosen, {chosen}});
  capture(first, GraphScope::router);
  if (model_.moe_latent_size > 0) {
    x = linear(Site::to_expert_vectors, x, x, tokens, h, model_.hidden, model_.linear_bias);
  }
  const TensorId places = tensor("places of rows", tokens * k, 1, TensorRole::statistics, 8);
  // A kernel that sends one copy a rank permutes as it copies: its rows are spread to their experts
  // where they arrive.
  const bool once = sends_once_a_rank(context_.dispatcher) && context_.ep > 1;
  TensorId rows = x;
  if (context_.expert_group > 0) {
    rows = to_places(Site::dispatch_product, {x, chosen}, tokens * k);
  } else if (!once) {
    rows = add(Site::permute, Permute{tokens, h, k}, {x, chosen}, tokens * k, h, {places});
  }
  const std::int64_t local = model_.experts / context_.ep;
  const auto all_rows = static_cast<std::int64_t>(static_cast<double>(tokens * k * context_.etp) *
                                                  context_.expert_load);
  rows = dispatched(Site::dispatch, rows, tokens * k, true);
  const bool sorts = context_.ep > 1 && local > 1;  // rows come by sender, products want experts
  if (sorts) rows = add(Site::sort_by_expert, Permute{all_rows, h, 1}, {rows}, all_rows, h);
  if (once) list_.nodes.back().saved.push_back(places);
  rows = expert_mlp(rows, all_rows, local);
  if (sorts) rows = add(Site::sort_by_sender, Permute{all_rows, h, 1}, {rows}, all_rows, h);
  rows = dispatched(Site::combine, rows, tokens * k, false);
  if (context_.expert_group > 0) {
    rows = to_places(Site::combine_product, {rows, chosen}, tokens);
  } else if (!once) {
    rows = add(Site::unpermute, Permute{tokens, h, k, true}, {rows}, tokens, h);
    keep("rows to scale", tokens * k, h, keeps(KernelOp::unpermute));
  }
  if (model_.moe_latent_size == 0) return rows;
  return linear(Site::from_expert_vectors, rows, rows, tokens, model_.hidden, h,
                model_.linear_bias);
}

// GShard's dispatch and combine (Lepikhin et al. 2020, arXiv:2006.16668, algorithm 1: einsum
// GSEC,GSM->EGCM and back): in every group of S tokens a product with a mask of S x E·C = top_k·S,
// whose shape and gradients are those of P · V.
TensorId LayerBuilder::to_places(Site site, const std::vector<TensorId>& inputs,
                                 std::int64_t rows) {
  const std::int64_t k = model_.top_k;
  const std::int64_t group = std::min<std::int64_t>(context_.expert_group, local_tokens_);
  const TensorId mask =
      tensor("mask of places", local_tokens_, k * group, TensorRole::beside, context_.element);
  return add(site, AttentionContext{k * local_tokens_ / group, group, model_.expert_width()},
             inputs, rows, model_.expert_width(), {mask, inputs.front()});
}

TensorId LayerBuilder::dispatched(Site site, TensorId rows, std::int64_t own, bool there) {
  const auto held = static_cast<std::int64_t>(static_cast<double>(own) * context_.exchanged_load);
  const std::int64_t h = model_.expert_width(), all = held * context_.etp;
  const bool gathers = context_.dispatcher == Dispatcher::allgather;
  const auto exchange = [&](TensorId x) {
    if (context_.ep == 1) return x;
    const auto there_and_back = CollectiveKind::all_to_all;
    Collective op{there_and_back, there_and_back, Axis::expert, size_of(held, h)};
    if (there && context_.dispatcher == Dispatcher::hybridep)
      op.routed = static_cast<double>(own) / static_cast<double>(model_.top_k);
    if (gathers) {  // all tokens of the group, of which each rank picks its own
      op.forward = there ? CollectiveKind::all_gather : CollectiveKind::reduce_scatter;
      op.backward = there ? CollectiveKind::reduce_scatter : CollectiveKind::all_gather;
      op.bytes = size_of(own / model_.top_k * context_.ep, h);
    }
    const bool summed = !there && sends_once_a_rank(context_.dispatcher);
    return add(site, op, {x}, summed ? own / model_.top_k : there ? held : own, h);
  };
  if (context_.etp == 1) return exchange(rows);
  const auto gather = CollectiveKind::all_gather, scatter = CollectiveKind::reduce_scatter;
  const auto share = [&](TensorId x) {
    return add(there ? Site::gather_for_experts : Site::sum_of_experts,
               Collective{there ? gather : scatter, there ? scatter : gather, Axis::expert_tensor,
                          size_of(all, h)},
               {x}, there ? all : held, h);
  };
  return there ? share(exchange(rows)) : exchange(share(rows));
}

// Megatron-LM clamps both halves of a gated activation before its kernel (fusions/
// fused_bias_geglu.py, weighted_bias_quick_geglu_impl), `e` bytes an element: two clamps of columns
// that are half of their rows, and their concatenation. Backward (PyTorch's clamp_backward) every
// bound is compared, three for the two halves; two comparisons are joined, and each half chooses
// between its gradient and a zero; then the halves are concatenated. No other model with gated
// experts has biases there, so such a one is taken for gpt-oss.
TensorId LayerBuilder::clamped(TensorId x, std::int64_t rows, std::int64_t cols) {
  const double e = context_.element;
  const Passes forward{4 * e, 3, 3, 1, 2 * e}, backward{5.5 * e + 4, 9, 3, 2.5, 3.5 * e + 2.5};
  return add(Site::expert_clamp, UnfusedPasses{rows, cols, forward, backward}, {x}, rows, cols, {x},
             Region::expert_activation);
}

// Megatron-LM adds the bias of the second product after it, times the router's probability (moe/
// experts.py, TEGroupedMLP._apply_bias): for each expert p · b in fp32 and the sum of 16 and 32
// bits, then their concatenation and a cast; backward the casts, both factors' gradients with their
// sums, and the gradient of the split. Of these the product and its gradients broadcast a factor,
// and the sum and the cast to fp32 convert what they read.
TensorId LayerBuilder::with_expert_bias(TensorId y, std::int64_t rows, std::int64_t local) {
  const double e = context_.element;
  const std::int64_t h = model_.expert_width();
  const auto each = static_cast<int>(local);
  const Passes forward{24 + 2 * e, 2 * each + 2, 2 * each + 2, 2, 12 + e},
      backward{32 + 4 * e, 6 * each + 2, 6 * each + 2, 3, 16 + 3 * e};
  return add(Site::expert_bias, UnfusedPasses{rows, h, forward, backward}, {y}, rows, h);
}

TensorId LayerBuilder::expert_mlp(TensorId x, std::int64_t rows, std::int64_t local) {
  const std::int64_t ffn = model_.expert_ffn_hidden / context_.etp;
  const std::int64_t inner = ffn * model_.gates(), h = model_.expert_width();
  // The fused kernel clamps and adds biases, scaled by probabilities (TransformerEngine @d0067d0d,
  // pytorch/ops/fused/grouped_mlp.py: ScaledClampedQGeGLU, scale_bias).
  const bool fused = context_.fused_grouped_mlp, bias = model_.linear_bias,
             unfused = bias && context_.unfused_expert_bias && !fused;
  const Seconds start = context_.expert_start;
  const bool by_pytorch = context_.attention_as_measured;  // of a stack that names its kernels
  const Site first = model_.gated_mlp ? Site::expert_gate_and_up : Site::expert_up;
  TensorId up = add(
      first,
      GroupedLinear{rows, inner, h, local, bias, start, true, keeps_narrow_weights(), by_pytorch},
      with_weight(first, x, inner * local, h), rows, inner, {routed(x)});
  up = expert_adapters(up, x, local, {{AdapterTarget::gate, ffn}, {AdapterTarget::up, ffn}});
  if (unfused && model_.gated_mlp) up = clamped(up, rows, inner);
  const bool fused_bias = context_.fused_bias_activation || !bias;
  const TensorId act =
      add(Site::expert_activation, Activation{rows, ffn, model_.gated_mlp, fused_bias, fused}, {up},
          rows, ffn, {up}, Region::expert_activation);
  if (model_.gated_mlp) keep("activated gate", rows, ffn, keeps(KernelOp::gated_activation));
  const TensorId kept = routed(act);
  if (kept != act) list_.tensors[static_cast<std::size_t>(kept)].cast_of = act;
  const TensorId product = add(
      Site::expert_down,
      GroupedLinear{rows, h, ffn, local, bias, start, !fused, keeps_narrow_weights(), by_pytorch},
      with_weight(Site::expert_down, act, h * local, ffn), rows, h, {kept});
  const TensorId down = expert_adapters(product, act, local, {{AdapterTarget::down, h}});
  return unfused ? with_expert_bias(down, rows, local) : down;
}

// What a product of experts keeps of its input: in the operand's precision.
TensorId LayerBuilder::routed(TensorId x) {
  if (context_.saved_input <= 0) return x;
  const std::int64_t rows = list_.tensors[static_cast<std::size_t>(x)].rows,
                     cols = list_.tensors[static_cast<std::size_t>(x)].cols;
  return tensor("narrow routed input", rows, cols, TensorRole::activation, context_.saved_input);
}

}  // namespace costmodel
