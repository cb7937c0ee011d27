// Model keys from Megatron-LM's arguments.
#pragma once

#include "planner/frameworks/import_megatron.hpp"

namespace planner {

// Throws costmodel::ConfigError as import_megatron().
void read_megatron_model(MegatronImport& in);

}  // namespace planner
