// Hugging Face config.json -> the keys of a model map. Knows model_type llama, mistral, qwen2,
// qwen3, gpt2, gpt_neox.
#pragma once

#include "costmodel/config/value.hpp"

namespace costmodel {

// Whether a map is a Hugging Face configuration (it names a model_type or architectures and has no
// `kind`).
bool is_hf_config(const Value& map);

// The same model in our keys, with marks of the source kept. Throws ConfigError: unknown
// model_type, missing or absurd keys.
Value from_hf_config(const Value& map);

}  // namespace costmodel
