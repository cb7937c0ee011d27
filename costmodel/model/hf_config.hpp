// Translates a Hugging Face config.json into the keys of a model map. Supports model_type llama,
// mistral, qwen2, qwen3, mixtral, qwen3_moe, deepseek_v2, deepseek_v3, gpt2, gpt_neox, t5, mt5 and
// nemotron_h.
#pragma once

#include "costmodel/config/value.hpp"

namespace costmodel {

// True for a Hugging Face configuration: the map has `model_type` or `architectures` and no `kind`.
bool is_hf_config(const Value& map);

// The same model with Shardplan's keys; each value keeps its place in the source. Throws
// ConfigError for an unknown model_type and for missing or out-of-range keys.
Value from_hf_config(const Value& map);

}  // namespace costmodel
