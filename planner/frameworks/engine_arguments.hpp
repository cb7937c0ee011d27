// vLLM's engine arguments in.
#pragma once

#include <string>
#include <vector>

#include "planner/exchange/imported_job.hpp"

namespace planner {

// A scenario from vLLM's engine arguments: a command (`vllm serve MODEL --tensor-parallel-size 2`)
// or a YAML map of them. `models`: names of ours, one of which MODEL may be. What a scenario needs
// besides is REPLACE. `engines`: names of ours, of which the script's version of vLLM chooses one.
// Throws ConfigError for a text that holds no such argument, and for one that is no number.
ImportedJob import_vllm(const std::string& text, const std::string& file,
                        const std::vector<std::string>& models,
                        const std::vector<std::string>& engines);

}  // namespace planner
