// Training keys from Megatron-LM's arguments: batch, precisions, optimizer, the stack's kernels and
// what overlaps.
#pragma once

#include "planner/frameworks/import_megatron.hpp"

namespace planner {

// `vpp`: virtual stages of a rank. Throws costmodel::ConfigError as import_megatron().
void read_megatron_training(MegatronImport& in, std::int64_t vpp);

}  // namespace planner
