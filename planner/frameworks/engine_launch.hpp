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
  // Of prompts and of decoding, where each has devices of its own; `arguments` is empty then.
  std::vector<EngineLaunch> pools;
};

// Why `target` can't serve a plan whose prompts have devices of their own; empty: it can, or the
// plan has none. vLLM's NixlConnector takes no pipeline (vllm-project/vllm#52913), and came with
// 0.9; SGLang's --disaggregation-mode is of 0.5 here.
std::string pools_refusal(const costmodel::ServingScenario& scenario, const std::string& target);

// `target`: "vllm" or "sglang". Throws ConfigError for another one, and for a plan that it has no
// words for. `version`: a release of configs/frameworks, in whose words it is; empty: in those of
// the scenario's stack.
EngineLaunch engine_launch(const costmodel::ServingScenario& scenario,
                           const costmodel::ServingSizes& sizes, const std::string& target,
                           const std::string& version = "");

}  // namespace planner
