// Translates config.json of t5 and mt5, whose fields differ from those of single-stack models
// (transformers, T5Config and MT5Config). Internal to costmodel.
#pragma once

#include <span>

#include "costmodel/model/hf_translation.hpp"

namespace costmodel {

std::span<const HfFamily> hf_t5s();

}  // namespace costmodel
