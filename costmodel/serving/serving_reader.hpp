// Reads a scenario of serving: `workload: inference`.
#pragma once

#include <string>
#include <vector>

#include "costmodel/config/key_text.hpp"
#include "costmodel/config/search_path.hpp"
#include "costmodel/scenario/scenario_parts.hpp"
#include "costmodel/serving/serving_spec.hpp"

namespace costmodel {

// Throws ConfigError for what is wrong with a key, and for a model or a plan that is not served.
ServingScenario read_serving(const Value& root, const std::string& name, const ConfigPath& path);

// Tokens of the longest request, prompt and answer; of a log-normal load all but one in a thousand.
std::int64_t longest_request(const ServingSpec& serving);

// Tokens that a step must have room for: a mean prompt, where vLLM does not cut prompts; else 0.
std::int64_t least_step(const ServingSpec& serving);

// `assignments` are the --set key.path=value options. Throws ConfigError.
ServingScenario load_serving(const std::string& file, const ConfigPath& path,
                             const std::vector<std::string>& assignments);

// The sizes that a scenario asks for: what is not written is 1, and dp as many replicas as there
// are devices for. Throws ConfigError at the key that is wrong.
ServingSizes sizes_of(const ServingScenario& scenario);

// Why a model is not served with these sizes; "" if it is. As vLLM refuses it.
std::string sizes_fault(const ServingSizes& sizes, const ModelSpec& model,
                        const ClusterSpec& cluster);

}  // namespace costmodel
