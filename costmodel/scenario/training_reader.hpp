// Reads the `training` map of a scenario.
#pragma once

#include <string>
#include <vector>

#include "costmodel/config/key_text.hpp"
#include "costmodel/config/search_path.hpp"
#include "costmodel/machine/cluster_spec.hpp"
#include "costmodel/model/model_spec.hpp"
#include "costmodel/plan/training_spec.hpp"

namespace costmodel {

// The stack of a training that names none: that of pretraining; of adapters, the data-parallel one
// that most use, or one with the other parallelisms where `plan` (may be null) splits the model.
inline constexpr const char *usual_stack = "megatron-core-2026", *usual_adapter_stack = "peft",
                            *splitting_adapter_stack = "megatron-bridge";
std::string stack_assumed(const Value& training, const Value* plan);

// The training of this model on this cluster, with its stack found on `path`. Throws ConfigError.
TrainingSpec read_training(const Value& map, const ConfigPath& path, const ModelSpec& model,
                           const ClusterSpec& cluster, const Value* plan = nullptr);

// The keys of `training`, with those of its overlap.
std::vector<KeyText> training_keys();

}  // namespace costmodel
