// Reads the `fine_tuning` map of `training`.
#pragma once

#include <vector>

#include "costmodel/config/key_text.hpp"
#include "costmodel/config/map_reader.hpp"
#include "costmodel/model/model_spec.hpp"
#include "costmodel/plan/training_spec.hpp"

namespace costmodel {

// Sets training.fine_tuning from the key of `reader`, if it is there. The precision and the stack
// of `training` must be known: throws ConfigError for what they, or the model, have not.
void read_fine_tuning(MapReader& reader, const ModelSpec& model, TrainingSpec& training);

// The keys of the map, with a point before their names.
std::vector<KeyText> fine_tuning_keys();

}  // namespace costmodel
