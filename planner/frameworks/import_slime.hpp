// The training part of a slime job: Megatron-LM's arguments, with slime's own for the lengths, the
// batch and the devices, and the model in a script that is sourced (scripts/models/qwen3-4B.sh).
#pragma once

#include <string>

#include "planner/exchange/imported_job.hpp"

namespace planner {

bool holds_slime(const std::string& text);

// Throws costmodel::ConfigError at the place of a value that cannot be read.
ImportedJob import_slime(const std::string& text, const std::string& file);

}  // namespace planner
