// T5's config.json, whose keys are unlike those of models of one stack (transformers, T5Config and
// MT5Config). Of use inside costmodel only.
#pragma once

#include <string_view>

#include "costmodel/config/value.hpp"

namespace costmodel {

// Of model_type, or the first of `architectures`.
bool is_t5_type(std::string_view type);

// Ours of such a map. Throws ConfigError.
Value from_t5_config(const Value& map, std::string_view type);

}  // namespace costmodel
