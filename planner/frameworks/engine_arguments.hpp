// Engine arguments of vLLM and SGLang in.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "planner/exchange/imported_job.hpp"

namespace planner {

// A scenario from the engine arguments of `family`, vllm or sglang: a command (`vllm serve MODEL
// --tensor-parallel-size 2`, `python3 -m sglang.launch_server --model-path MODEL --tp-size 2`) or a
// YAML map of them. `models`: names of ours, one of which MODEL may be. What a scenario needs
// besides is REPLACE. `engines`: names of ours, of which the version that the script has chooses
// one.
// Throws ConfigError for a text that holds no such argument, and for one that is no number.
ImportedJob import_engine(const std::string& text, const std::string& file, std::string_view family,
                          const std::vector<std::string>& models,
                          const std::vector<std::string>& engines);

}  // namespace planner
