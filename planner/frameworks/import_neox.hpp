// A configuration of GPT-NeoX (its model, DeepSpeed's settings and the batch in one YAML file) as a
// scenario.
#pragma once

#include <string>

#include "planner/exchange/imported_job.hpp"

namespace planner {

bool holds_neox(const std::string& text);

// Keys stand with dashes or underscores. Throws costmodel::ConfigError at the place of a value that
// cannot be read, and for mixers that are no attention (gMLP, RWKV, Mamba).
ImportedJob import_neox(const std::string& text, const std::string& file);

}  // namespace planner
