// What a device of a replica holds: weights, cached keys and values, activations.
#pragma once

#include <optional>

#include "costmodel/serving/served_program.hpp"
#include "costmodel/serving/serving_spec.hpp"

namespace costmodel {

// Bytes that a token's keys and values take in one layer on one device: 2 · kv_heads/tp · head_dim
// elements, each tensor rank at least one head; with latent attention kv_lora_rank + the rotary
// key, the same on every rank (DeepSeek-V2, arXiv:2405.04434, section 2.1.2).
// The first is of a layer without a window, the second the mean of all.
Bytes layer_cache_bytes(const ModelSpec& model, int tp, CacheFormat format);
Bytes cache_bytes_per_layer(const ModelSpec& model, int tp, CacheFormat format);

struct ServingMemory {
  Bytes device;       // what it has
  Bytes usable;       // by the engine's rule (MemoryShare)
  Bytes weights;      // of the fullest stage, less what is offloaded to the host
  Bytes activations;  // of a step of max_num_batched_tokens tokens
  Bytes context;      // of the engine, outside its allocator
  Bytes cache;        // of the usable memory, for keys and values; 0: nothing fits
  Bytes token;        // of one token on the fullest stage's device
  double blocks = 0;  // of the cache; whole ones
  double tokens = 0;  // of a replica's cache
  // Tokens of the request without whose room the engine does not start; 0: it starts without
  // (vllm/v1/core/kv_cache_utils.py, check_enough_kv_cache_memory).
  double longest = 0;
  bool fits() const { return tokens > 0 && tokens >= longest; }
};

// `weights` of a device, where they are known (StepTimes).
ServingMemory serving_memory(const ServingScenario& scenario, const ServingSizes& sizes,
                             std::optional<Bytes> weights = {});

// Requests of the mean length whose whole sequence the cache holds.
inline double requests_held(const ServingMemory& memory, const ServingSpec& serving) {
  return memory.tokens / (serving.input.mean + serving.output.mean);
}

// Bytes of weights of a stage on a device.
Bytes stage_weights(const ModelSpec& model, WeightFormat format, const ServingSizes& sizes,
                    const ServedStage& stage);

// Bytes of weights of the fullest stage on a device.
Bytes weights_held(const ModelSpec& model, WeightFormat format, const ServingSizes& sizes);

}  // namespace costmodel
