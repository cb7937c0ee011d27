// A model where a scenario may stand: which one is meant, and what is assumed of its training where
// nothing but a cluster is given.
#pragma once

#include <cstdint>
#include <string>

#include "costmodel/config/search_path.hpp"

namespace costmodel {

// Sequences of an iteration on so many devices: 4 Mi tokens, with which Llama 3's training begins,
// as far as that is 1 to 16 sequences a device; as many on each device, so that any split into
// replicas divides them.
std::int64_t usual_batch(std::int64_t sequence, std::int64_t devices);

// Whether a file is that of a model and not of a scenario: Hugging Face's config.json, or a map of
// the keys of a model.
bool is_model(const Value& file);

// The file of a scenario or of a model: a path, the name of a scenario in configs/scenarios, or one
// of the names of a model in configs/models (models_called). Throws ConfigError with the nearest
// names, or with the candidates where several models fit.
std::string operand_file(const std::string& operand, const ConfigPath& path);

// Adds what `root`, a scenario with a model and a cluster, lacks of sequence, batch, precision and
// stack, and what that is under its key `assumed`. Throws ConfigError as for a scenario's model and
// cluster.
void assume_training(Value& root, const ConfigPath& path);

}  // namespace costmodel
