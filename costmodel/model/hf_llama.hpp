// Translates config.json of llama, mistral, qwen2, qwen3, mixtral, qwen3_moe, deepseek_v2 and
// deepseek_v3, and of gpt2 and gpt_neox. Internal to costmodel.
#pragma once

#include <span>

#include "costmodel/model/hf_translation.hpp"

namespace costmodel {

std::span<const HfFamily> hf_llamas();

}  // namespace costmodel
