// Plan keys from Megatron-LM's arguments.
#pragma once

#include "planner/frameworks/import_megatron.hpp"

namespace planner {

// Returns the virtual stages of a rank. Throws costmodel::ConfigError as import_megatron().
int read_megatron_plan(MegatronImport& in);

}  // namespace planner
