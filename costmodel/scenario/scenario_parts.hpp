// The model and the cluster of any scenario, of training or of serving.
#pragma once

#include "costmodel/config/map_reader.hpp"
#include "costmodel/scenario/scenario.hpp"

namespace costmodel {

// Reads the keys `model` and `cluster`. Throws ConfigError.
void read_parts(MapReader& reader, const ConfigPath& path, Scenario& scenario);

}  // namespace costmodel
