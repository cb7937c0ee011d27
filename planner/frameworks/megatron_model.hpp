// Model keys from Megatron-LM's arguments.
#pragma once

#include "planner/frameworks/megatron_import.hpp"

namespace planner {

// Throws costmodel::ConfigError as import_megatron().
void read_megatron_model(MegatronImport& in);

}  // namespace planner
