// Translates a Hugging Face config.json into the keys of a model map. Supports model_type llama,
// mistral, qwen2, qwen3, mixtral, qwen3_moe, deepseek_v2, deepseek_v3, gpt2 and gpt_neox here, and
// what hf_decoders, hf_classic, hf_mamba, hf_t5 and hf_nemotron_h read.
#pragma once

#include <string>
#include <vector>

#include "costmodel/config/value.hpp"

namespace costmodel {

// True for a Hugging Face configuration: the map has `model_type` or `architectures` and no `kind`.
bool is_hf_config(const Value& map);

// The same model with Shardplan's keys; each value keeps its place in the source. Throws
// ConfigError for an unknown model_type and for missing or out-of-range keys.
Value from_hf_config(const Value& map);

// The same, and in `told` a sentence for each field that is not understood and for each choice that
// no key describes.
Value from_hf_config(const Value& map, std::vector<std::string>& told);

}  // namespace costmodel
