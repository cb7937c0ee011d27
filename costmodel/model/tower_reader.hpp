// Reads and writes the towers of a model: the maps `vision` and `audio` among its keys.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "costmodel/config/key_text.hpp"
#include "costmodel/config/map_reader.hpp"
#include "costmodel/model/tower.hpp"

namespace costmodel {

// How a tower's layers, which have the keys of a model, are read and written.
using ReadModel = ModelSpec (*)(const Value& map, const std::string& name);
using WriteModel = Value (*)(const ModelSpec& model);

// Reads the towers that the map has; `layer_keys` are those of a model. Throws ConfigError.
void read_towers(MapReader& reader, ReadModel read_layers,
                 const std::vector<std::string_view>& layer_keys, ModelSpec& model);
void put_towers(const ModelSpec& model, WriteModel write_layers, Value& map);

// The keys of a tower beyond those of its layers (".patch").
std::vector<KeyText> tower_keys(TowerInput input);

}  // namespace costmodel
