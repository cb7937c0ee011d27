// A plan of serving as a launch of vLLM or SGLang.
//
// vLLM lays its workers out as rank = pp_rank · tp + tp_rank: with pp 2 and tp 4 the replica's
// tensor groups are [[0, 1, 2, 3], [4, 5, 6, 7]] (vllm/distributed/parallel_state.py,
// initialize_model_parallel: ranks reshaped to dp x pp x tp).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "costmodel/serving/serving_estimate.hpp"

namespace planner {

struct EngineLaunch {
  std::string text;                                            // a shell script
  std::vector<std::pair<std::string, std::string>> arguments;  // "tensor-parallel-size", "2"
  std::vector<std::string> notes;
};

// `target`: "vllm" or "sglang". Throws ConfigError for another one, and for a plan that a single
// launch has no words for. `version`: a release of configs/frameworks, in whose words it is; empty:
// in those of the scenario's stack.
EngineLaunch engine_launch(const costmodel::ServingScenario& scenario,
                           const costmodel::ServingSizes& sizes, const std::string& target,
                           const std::string& version = "");

}  // namespace planner
