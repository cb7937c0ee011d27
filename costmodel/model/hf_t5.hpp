// Translates T5's config.json, whose keys differ from those of single-stack models (transformers,
// T5Config and MT5Config). Internal to costmodel.
#pragma once

#include <string_view>

#include "costmodel/config/value.hpp"

namespace costmodel {

// `type` is the value of model_type, or the first of `architectures`.
bool is_t5_type(std::string_view type);

// The same model with Shardplan's keys. Throws ConfigError.
Value from_t5_config(const Value& map, std::string_view type, std::vector<std::string>& told);

}  // namespace costmodel
