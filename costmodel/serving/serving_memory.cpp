#include "costmodel/serving/serving_memory.hpp"

#include <algorithm>
#include <cmath>

#include "costmodel/serving/served_layer.hpp"

namespace costmodel {

namespace {

double layer_bytes(LayerKind kind, const ModelSpec& model, WeightFormat format,
                   const ServingSizes& sizes) {
  const double element = element_bytes(format);
  const ServedLayer layer = served_layer(kind, model, sizes, 1, element);
  double bytes = element * layer.other_weights;
  for (const ServedProduct& p : layer.products)
    bytes += p.weights() * (p.narrow ? bytes_of(format) : element);
  return bytes;
}

// Of the hidden states: the residual, its norm and a branch's result; of the widest branch: the
// result of its first product and of its activation. Logits in 16 bits on their rank, and those of
// all ranks in fp32 with their probabilities, for every request that runs. Assumed from the order
// in which an engine frees them.
double activation_bytes(const ModelSpec& model, const ServingSpec& serving, int tp) {
  const ServingLimits& limits = serving.limits;
  const double prompts = serving.input.mean * static_cast<double>(limits.max_num_seqs);
  const double tokens = std::min(static_cast<double>(limits.max_num_batched_tokens), prompts);
  const auto hidden = static_cast<double>(model.hidden);
  const double branches = 1 + static_cast<double>(model.gates());
  const double dense = static_cast<double>(model.ffn_hidden) * branches / tp;
  const double routed =
      model.experts > 0
          ? static_cast<double>(model.top_k) *
                (hidden + static_cast<double>(model.expert_ffn_hidden) * branches / tp)
          : 0;
  const double element = element_bytes(serving.weights);
  const double row = element * (3 * hidden + std::max(dense, std::min(routed, 4 * dense + hidden)));
  const auto vocab = static_cast<double>(model.vocab);
  return row * tokens + static_cast<double>(limits.max_num_seqs) * vocab * (element / tp + 8);
}

double fullest_layers(double layers, int pp) { return std::ceil(layers / pp); }

}  // namespace

Bytes cache_bytes_per_layer(const ModelSpec& model, int tp, CacheFormat format) {
  const double element = bytes_of(format);
  if (model.latent_attention())
    return Bytes(static_cast<double>(model.kv_lora_rank + model.qk_pos_emb_head_dim) * element);
  const auto heads = std::max<std::int64_t>(1, ceil_div(model.kv_heads, tp));
  return Bytes(static_cast<double>(heads * (model.head_dim + model.value_dim())) * element);
}

Bytes stage_weights(const ModelSpec& model, WeightFormat format, const ServingSizes& sizes,
                    const ServedStage& stage) {
  double bytes = 0;
  for (std::int64_t i = 0; i < stage.layers; ++i) {
    const bool sparse = model.moe_layers(stage.first_layer + i, stage.first_layer + i + 1) > 0;
    bytes += layer_bytes(sparse ? LayerKind::moe : LayerKind::block, model, format, sizes);
  }
  if (stage.first) bytes += layer_bytes(LayerKind::embedding, model, format, sizes);
  if (!stage.last) return Bytes(bytes);
  bytes += layer_bytes(LayerKind::head, model, format, sizes);
  if (stage.first && model.tie_embeddings) {  // one table is both
    const ServedLayer head = served_layer(LayerKind::head, model, sizes, 1);
    for (const ServedProduct& p : head.products) bytes -= p.weights() * element_bytes(format);
  }
  return Bytes(bytes);
}

Bytes weights_held(const ModelSpec& model, WeightFormat format, const ServingSizes& sizes) {
  const ServedStack stack = stack_of(model);
  double all = 0;
  if (stack.dense > 0) all += stack.dense * layer_bytes(LayerKind::block, model, format, sizes);
  if (stack.sparse > 0) all += stack.sparse * layer_bytes(LayerKind::moe, model, format, sizes);
  const double head = layer_bytes(LayerKind::head, model, format, sizes);
  const double table = layer_bytes(LayerKind::embedding, model, format, sizes);
  if (sizes.pp == 1) return Bytes(all + (model.tie_embeddings ? 0 : head) + table);
  const double stage = all / stack.layers() * fullest_layers(stack.layers(), sizes.pp);
  return Bytes(stage + std::max(head, table));
}

ServingMemory serving_memory(const ModelSpec& model, const ClusterSpec& cluster,
                             const ServingSpec& serving, const ServingSizes& sizes) {
  return serving_memory(model, cluster, serving, sizes,
                        weights_held(model, serving.weights, sizes));
}

ServingMemory serving_memory(const ModelSpec& model, const ClusterSpec& cluster,
                             const ServingSpec& serving, const ServingSizes& sizes, Bytes weights) {
  ServingMemory m;
  m.device = cluster.device.memory;
  m.usable = m.device * serving.limits.gpu_memory_utilization;
  m.weights = max(Bytes(0), weights - serving.cpu_offload);
  m.activations = Bytes(activation_bytes(model, serving, sizes.tp));
  m.context = serving.engine.context;
  m.cache = m.usable - m.weights - m.activations - m.context;
  const double layers = fullest_layers(static_cast<double>(model.layers), sizes.pp);
  m.token = cache_bytes_per_layer(model, sizes.tp, serving.kv_cache) * layers;
  const auto block = static_cast<double>(serving.limits.block_size);
  m.blocks = std::max(0.0, std::floor(m.cache.value / (m.token.value * block)));
  m.tokens = m.blocks * block;
  return m;
}

double requests_held(const ServingMemory& memory, const ServingSpec& serving) {
  return memory.tokens / (serving.input.mean + serving.output.mean);
}

}  // namespace costmodel
