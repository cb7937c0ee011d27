// Towers of a Hugging Face config.json: vision_config and audio_config, by family.
// Internal to costmodel.
#pragma once

#include <string>
#include <vector>

#include "costmodel/config/value.hpp"

namespace costmodel {

// The language model's map: text_config or llm_config, with the fields of all models that a file
// may have outside of it and what the family's class takes for those it lacks; else the file.
Value hf_language_model(const Value& file);
const Value* hf_text_config(const Value& file);

// Sets `vision` and `audio` among the keys of a model for the towers that the file has. What is not
// known is left out, with a sentence in `omitted`. Throws ConfigError for sizes out of range.
void put_hf_towers(const Value& file, Value& keys, std::vector<std::string>& omitted);

}  // namespace costmodel
