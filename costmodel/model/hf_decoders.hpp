// Translates config.json of decoders of the llama family whose layers or norms differ: phi3,
// gemma2, gemma3_text, olmo2, gpt_oss and qwen3_next. Internal to costmodel.
#pragma once

#include <span>

#include "costmodel/model/hf_translation.hpp"

namespace costmodel {

std::span<const HfFamily> hf_decoders();

}  // namespace costmodel
