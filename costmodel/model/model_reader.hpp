// Reads a model from a file in configs/models or from a map.
#pragma once

#include <string>

#include "costmodel/config/value.hpp"
#include "costmodel/model/model_spec.hpp"

namespace costmodel {

// Reads a map with `kind` and its other keys. A missing key takes the family's usual value and is
// listed in `assumed`. Throws ConfigError.
ModelSpec read_model(const Value& map, const std::string& name);

// The model as a map in canonical form (the output of `import hf`).
Value to_value(const ModelSpec& model);

}  // namespace costmodel
