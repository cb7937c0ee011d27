// A model's file, configs/models, or map.
#pragma once

#include <string>

#include "costmodel/config/value.hpp"
#include "costmodel/model/model_spec.hpp"

namespace costmodel {

// Reads a map with `kind`, ... Missing keys take the family's usual value and are listed in
// `assumed`. Throws ConfigError.
ModelSpec read_model(const Value& map, const std::string& name);

// The same map in canonical form (what `import hf` writes).
Value to_value(const ModelSpec& model);

}  // namespace costmodel
