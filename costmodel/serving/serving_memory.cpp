#include "costmodel/serving/serving_memory.hpp"

#include <algorithm>
#include <cmath>

#include "costmodel/operators/tower_layers.hpp"
#include "costmodel/serving/served_layer.hpp"

namespace costmodel {

namespace {

// What PyTorch's allocator gives a matrix: from 10 MiB on blocks of 2 MiB, of which more than 1 MiB
// left over goes to another tensor (c10/cuda/CUDACachingAllocator.cpp: kMinLargeAlloc, kRoundLarge,
// should_split).
double allocated(double bytes) {
  constexpr double mebibyte = 1048576;
  const double over = std::ceil(bytes / (2 * mebibyte)) * 2 * mebibyte - bytes;
  return bytes >= 10 * mebibyte && over <= mebibyte ? bytes + over : bytes;
}

double layer_bytes(LayerKind kind, const ModelSpec& model, WeightFormat format,
                   const ServingSizes& sizes, bool in_blocks = false) {
  const double element = element_bytes(format);
  const ServedLayer layer = served_layer(kind, model, sizes, 1, format);
  double bytes = element * layer.other_weights;
  for (const ServedProduct& p : layer.products) {
    const double own = p.weights() * (p.narrow ? bytes_of(format) : element);
    bytes += in_blocks ? allocated(own) : own;
  }
  return bytes;
}

// Rows that a mixture's kernels take at once (vllm/envs.py, VLLM_FUSED_MOE_CHUNK_SIZE), with the
// inputs and results of both products of each chosen expert, in two buffers
// (vllm/model_executor/layers/fused_moe/fused_moe.py, workspace_shapes).
double expert_bytes(const ModelSpec& model, const ServingSizes& sizes, double tokens,
                    double element) {
  if (model.experts == 0) return 0;
  constexpr double chunk = 32'768;
  const double cut = sizes.ep <= sizes.tp ? static_cast<double>(sizes.ep) / sizes.tp : 1;
  const auto hidden = static_cast<double>(model.expert_width());
  const double inner = static_cast<double>(model.expert_ffn_hidden) * cut;
  const double first = inner * static_cast<double>(model.gates());
  return std::min(tokens, chunk) * static_cast<double>(model.top_k) * element *
         (std::max(inner, hidden) + std::max(first, hidden));
}

// The peak of the pass that an engine profiles: the first product of the widest MLP and its
// activation with 3.5 hidden states a token, or, where more, the hidden states and what sampling
// takes of max_num_seqs requests, on every rank (vllm/v1/worker/gpu_model_runner.py, profile_run
// and _dummy_sampler_run). A later stage also has what the one before it sent.
double activation_bytes(const ModelSpec& model, const ServingSpec& serving,
                        const ServingSizes& sizes) {
  const ServingLimits& limits = serving.limits;
  const auto seqs = static_cast<double>(limits.max_num_seqs);
  auto tokens = static_cast<double>(limits.max_num_batched_tokens);
  const double running = std::min(seqs, tokens);
  if (!limits.chunked_prefill) tokens = std::min(tokens, serving.input.mean * seqs);
  const double element = element_bytes(serving.weights);
  const double hidden = static_cast<double>(model.hidden) * element;
  const bool dense = model.moe_layers(0, model.layers) < model.layers;
  const auto width = static_cast<double>(dense ? model.ffn_hidden : model.shared_ffn());
  const double branches = 1 + static_cast<double>(model.gates());
  const double pass = tokens * (3.5 * hidden + width * branches / sizes.tp * element);
  const double logits = serving.engine.logit_bytes + element - 2;  // a copy of them in 16 bits
  const double sampling = tokens * hidden + running * static_cast<double>(model.vocab) * logits;
  const double received =
      sizes.pp > 1 ? tokens * hidden * static_cast<double>(serving.engine.stage_tensors) : 0;
  const double experts = expert_bytes(model, sizes, tokens, element);
  const double kept = serving.engine.keeps_workspace ? experts : 0;
  return std::max(pass + experts, sampling + kept) + received;
}

}  // namespace

Bytes layer_cache_bytes(const ModelSpec& model, int tp, CacheFormat format) {
  const double element = bytes_of(format);
  if (model.latent_attention())
    return Bytes(static_cast<double>(model.kv_lora_rank + model.qk_pos_emb_head_dim) * element);
  const auto heads = std::max<std::int64_t>(1, ceil_div(model.kv_heads, tp));
  return Bytes(static_cast<double>(heads * (model.head_dim + model.value_dim())) * element);
}

Bytes cache_bytes_per_layer(const ModelSpec& model, int tp, CacheFormat format) {
  const Bytes full = layer_cache_bytes(model, tp, format);
  if (!model.windows_differ()) return full;
  double windows = 0;
  for (std::int64_t i = 0; i < model.layers; ++i) windows += model.attention_at(i) == 'S' ? 1 : 0;
  const auto layers = static_cast<double>(model.layers);
  const Bytes own = layer_cache_bytes(model.as_windowed(), tp, format);
  return (full * (layers - windows) + own * windows) / layers;
}

Bytes stage_weights(const ModelSpec& model, WeightFormat format, const ServingSizes& sizes,
                    const ServedStage& stage) {
  const auto of = [&](LayerKind kind) { return layer_bytes(kind, model, format, sizes); };
  double bytes = 0;
  for (std::int64_t i = 0; i < stage.layers; ++i)
    bytes += of(served_kind(model, stage.first_layer + i));
  if (stage.first) bytes += of(LayerKind::embedding);
  const bool tied = stage.first && model.tie_embeddings;  // one table is both
  if (!stage.last) return Bytes(bytes);
  const ServedLayer head = served_layer(LayerKind::head, model, sizes, 1);
  bytes += tied ? element_bytes(format) * head.other_weights : of(LayerKind::head);
  return Bytes(bytes);
}

// Of towers, in 16 bits. A rank has all of one that tensor parallelism does not cut.
double tower_bytes(const ModelSpec& model, const ServingSizes& sizes) {
  double bytes = 0;
  for (const TowerSpec& tower : towers_of(model))
    bytes += 2 * tower_parameters(tower) / (is_cut(tower, sizes.tp) ? sizes.tp : 1);
  return bytes;
}

Bytes weights_held(const ModelSpec& model, WeightFormat format, const ServingSizes& sizes) {
  const ServedStack stack = stack_of(model);
  const auto bytes = [&](LayerKind kind, WeightFormat f) {
    return layer_bytes(kind, model, f, sizes, true);
  };
  const double kept =
      bytes_of(format) < bytes_of(WeightFormat::bf16)
          ? std::min(stack.dense, 2.0 * static_cast<double>(model.unquantized_layers))
          : 0;
  double all = 0;
  for (const ServedLayers& own : served_layers(model)) {
    const bool dense = own.kind.its.feed_forward == FeedForward::dense;
    const double wide = dense ? kept * own.number / stack.dense : 0;
    all += (own.number - wide) * bytes(own.kind, format);
    if (wide > 0) all += wide * bytes(own.kind, WeightFormat::bf16);
  }
  const double head = bytes(LayerKind::head, format);
  const double table = bytes(LayerKind::embedding, format) + tower_bytes(model, sizes);
  if (sizes.pp == 1) return Bytes(all + (model.tie_embeddings ? 0 : head) + table);
  const double stage = all / stack.layers() * std::ceil(stack.layers() / sizes.pp);
  return Bytes(stage + std::max(head, table));
}

ServingMemory serving_memory(const ServingScenario& s, const ServingSizes& sizes,
                             std::optional<Bytes> weights) {
  const ServingSpec& serving = s.serving;
  ServingMemory m;
  const EngineSpec& engine = serving.engine;
  const bool wide = sizes.tp > 1 && engine.tensor_context.value > 0;
  m.device = s.cluster.device.memory;
  if (!weights) weights = weights_held(s.model, serving.weights, sizes);
  m.weights = max(Bytes(0), *weights - serving.cpu_offload);
  m.activations = Bytes(activation_bytes(s.model, serving, sizes));
  m.context = wide ? engine.tensor_context : engine.context;
  const Bytes all = m.weights + m.activations + m.context;
  const bool pool = engine.memory_share == MemoryShare::pool;
  const bool rest = engine.memory_share == MemoryShare::free;
  const double share = serving.limits.gpu_memory_utilization;
  const Bytes shared = pool   ? m.device - m.context
                       : rest ? max(Bytes(0), m.device - all)
                              : m.device;
  m.usable = min(m.device, shared * share + (rest ? all : Bytes(0)));
  m.cache = max(Bytes(0), m.usable - (pool ? m.weights : all));
  const double layers = std::ceil(static_cast<double>(s.model.layers) / sizes.pp);
  m.token = cache_bytes_per_layer(s.model, sizes.tp, serving.kv_cache) * layers;
  const auto block = static_cast<double>(serving.limits.block_size);
  m.blocks = std::floor(m.cache.value / (m.token.value * block));
  m.tokens = m.blocks * block;
  m.longest = engine.holds_longest ? static_cast<double>(serving.max_model_len) : 0;
  return m;
}

}  // namespace costmodel
