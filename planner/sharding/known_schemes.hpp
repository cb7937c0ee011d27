// Recognises known parallel schemes in a sharding.
#pragma once

#include <string>
#include <vector>

#include "planner/sharding/stage_sharding.hpp"

namespace planner {

// Names of the schemes in a choice, one sentence each: Megatron's tensor and sequence parallelism,
// data parallelism with its ZeRO stage, expert parallelism, DeepSpeed-Ulysses. Anything else is
// described as it is.
std::vector<std::string> known_names(const StageGraph& graph, const AlikeLayers& alike,
                                     const std::vector<int>& choice);

}  // namespace planner
