// Translates config.json of the GPT family beside gpt2 and gpt_neox: falcon, bloom, opt, gpt_neo
// and gpt_bigcode, and of the encoder bert. Internal to costmodel.
#pragma once

#include <span>

#include "costmodel/model/hf_translation.hpp"

namespace costmodel {

std::span<const HfFamily> hf_classics();

}  // namespace costmodel
