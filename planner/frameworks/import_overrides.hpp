// A run of Megatron-Bridge or of NeMo 2.x as a scenario, from the fields that a launch script, a
// list of overrides or a Python file sets.
#pragma once

#include <string>

#include "planner/exchange/imported_job.hpp"

namespace planner {

// Whether the text sets fields of Megatron-Bridge's ConfigContainer, or of a recipe of NeMo 2.x:
// "model.tensor_model_parallel_size=2", "recipe.trainer.strategy.tensor_model_parallel_size = 2".
bool holds_bridge_overrides(const std::string& text);
bool holds_nemo_overrides(const std::string& text);

// What no override says is as the recipe sets it, which only the recipe knows: the notes say so.
// Throws costmodel::ConfigError at the place of a value that is not one.
ImportedJob import_overrides(const std::string& text, const std::string& file);

}  // namespace planner
