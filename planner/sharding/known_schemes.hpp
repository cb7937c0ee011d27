// Known schemes recognised in a sharding.
#pragma once

#include <string>
#include <vector>

#include "planner/sharding/stage_sharding.hpp"

namespace planner {

// What a choice is in the field's words, a sentence each: Megatron's tensor and sequence
// parallelism, data parallelism with its ZeRO stage, expert parallelism, DeepSpeed-Ulysses; what is
// none of them as it is.
std::vector<std::string> known_names(const StageGraph& graph, const AlikeLayers& alike,
                                     const std::vector<int>& choice);

}  // namespace planner
