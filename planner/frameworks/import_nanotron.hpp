// A configuration of nanotron (general, model, parallelism, tokens, optimizer) as a scenario.
#pragma once

#include <string>

#include "planner/exchange/imported_job.hpp"

namespace planner {

bool holds_nanotron(const std::string& text);

// The model is that of its model_config, whose fields are those of a llama or a Qwen2 of Hugging
// Face. Throws costmodel::ConfigError at the place of a value that cannot be read.
ImportedJob import_nanotron(const std::string& text, const std::string& file);

}  // namespace planner
