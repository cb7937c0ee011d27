// The settings of torchtitan's Python configuration, read as text: nothing is executed.
#pragma once

#include <string>
#include <vector>

#include "planner/frameworks/overrides_text.hpp"

namespace planner {

// Two forms: "config.training.steps = 20" is the field training.steps, and the keyword arguments
// of TrainingConfig, ParallelismConfig, CompileConfig, ActivationCheckpointConfig and of policies
// ("FullAC.Config()") are the fields of their section. Values are whole numbers and their products
// (8 * 8192), strings, True, False, None, and lists, of lists too, as read_toml() has them; of any
// other value `unknown` is what stands there. The model is model.name and model.flavor, by
// build_model_config("8B"), model_registry("8B") or a recipe called llama3_8b. A value that is set
// twice is there twice. Throws costmodel::ConfigError for quotes and brackets that are not closed.
std::vector<SetField> read_python_settings(const std::string& text, const std::string& file);

}  // namespace planner
