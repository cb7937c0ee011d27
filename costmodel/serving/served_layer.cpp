#include "costmodel/serving/served_layer.hpp"

#include <algorithm>
#include <cmath>

#include "costmodel/serving/served_program.hpp"

namespace costmodel {

namespace {

// Engines add the residual in the kernel of the norm that follows (vLLM's fused_add_rms_norm), and
// sample where training computes a loss.
bool has_no_kernel(Site site) {
  return site == Site::attention_residual || site == Site::mlp_residual || site == Site::residual;
}

bool is_of_attention(Site site) {
  return site == Site::qkv || site == Site::attention_projection || site == Site::q ||
         site == Site::q_down || site == Site::kv || site == Site::kv_down;
}

ServedProduct grouped(const GroupedLinear& o, bool up, const ServingSizes& sizes, double tokens,
                      double chosen) {
  ServedProduct p;
  const auto experts = static_cast<double>(o.experts);
  p.columns = static_cast<double>(o.n);
  p.inner = static_cast<double>(o.k);
  p.expert = p.narrow = true;
  if (sizes.ep <= sizes.tp) {  // each expert is cut over tp / ep ranks
    (up ? p.columns : p.inner) *= static_cast<double>(sizes.ep) / sizes.tp;
    p.rows = tokens * chosen / sizes.ep;
    p.held = experts / sizes.ep;
    p.read = distinct_experts(experts, chosen, tokens) / sizes.ep;
    return p;
  }
  const double all = tokens * sizes.ep / sizes.tp;  // tokens of the ranks that share the experts
  p.rows = all * chosen / sizes.ep;
  p.held = std::ceil(experts / sizes.ep);  // what does not divide is filled with copies of experts
  p.read = p.held * distinct_experts(experts, chosen, all) / experts;
  return p;
}

}  // namespace

double distinct_experts(double experts, double chosen, double tokens) {
  return experts * (1 - std::pow(1 - chosen / experts, tokens));
}

ServedLayer served_layer(LayerKind kind, const ModelSpec& model, const ServingSizes& sizes,
                         double tokens, WeightFormat format) {
  const double element = element_bytes(format);
  const bool narrow = bytes_of(format) < bytes_of(WeightFormat::bf16);
  const std::int64_t rows = std::max<std::int64_t>(1, std::llround(tokens));
  const double scale = tokens / static_cast<double>(rows);
  const OpList list = served_list(kind, model, sizes.tp, {1, rows}, element);
  ServedLayer layer;
  for (const Node& node : list.nodes) {
    if (const auto* linear = std::get_if<Linear>(&node.op)) {
      const bool wide = node.site == Site::logits || node.site == Site::router ||
                        format == WeightFormat::mxfp4 || (narrow && model.unquantized_dense) ||
                        (narrow && model.unquantized_attention && is_of_attention(node.site));
      layer.products.push_back({static_cast<double>(linear->m) * scale,
                                static_cast<double>(linear->n), static_cast<double>(linear->k), 1,
                                1, false, !wide});
      if (linear->bias) layer.other_weights += static_cast<double>(linear->n);
      continue;
    }
    if (const auto* experts = std::get_if<GroupedLinear>(&node.op)) {
      const bool up = node.site != Site::expert_down;
      layer.products.push_back(
          grouped(*experts, up, sizes, tokens, static_cast<double>(model.top_k)));
      continue;
    }
    const bool skipped = std::holds_alternative<Collective>(node.op) ||
                         std::holds_alternative<FlashAttention>(node.op);
    if (skipped) continue;
    layer.other_weights += weights_of(node.op);
    const Work work = work_of(node.op, Pass::forward, element);
    layer.streamed += work.moved * scale;
    if (!has_no_kernel(node.site)) layer.kernels += std::min(work.kernels, 2);
  }
  return layer;
}

ServedStack stack_of(const ModelSpec& model) {
  const auto sparse = static_cast<double>(model.moe_layers(0, model.layers));
  return {static_cast<double>(model.layers) - sparse, sparse};
}

LayerKind served_kind(const ModelSpec& model, std::int64_t layer) {
  if (model.windows_differ()) return model.block_at(layer);
  return model.has_experts(layer) ? LayerKind::moe : LayerKind::block;
}

std::vector<ServedLayers> served_layers(const ModelSpec& model) {
  std::vector<ServedLayers> all;
  const ServedStack stack = stack_of(model);
  if (!model.windows_differ()) {
    if (stack.dense > 0) all.push_back({LayerKind::block, stack.dense});
    if (stack.sparse > 0) all.push_back({LayerKind::moe, stack.sparse});
    return all;
  }
  for (const Block& block : model.blocks()) all.push_back({block, 0});
  for (std::int64_t i = 0; i < model.layers; ++i)
    std::ranges::find(all, LayerKind(model.block_at(i)), &ServedLayers::kind)->number += 1;
  return all;
}

}  // namespace costmodel
