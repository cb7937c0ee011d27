// The model and the cluster of any scenario, of training or of serving.
#pragma once

#include "costmodel/config/map_reader.hpp"
#include "costmodel/scenario/scenario.hpp"

namespace costmodel {

// The model that `written` names or holds, with what is written over its base. Throws ConfigError.
ModelSpec find_model(const Value& written, const ConfigPath& path);

// Reads the keys `model` and `cluster`. Throws ConfigError.
void read_parts(MapReader& reader, const ConfigPath& path, Scenario& scenario);

}  // namespace costmodel
