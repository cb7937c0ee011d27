// Scenarios of serving from a few lines.
#pragma once

#include <string>

#include "costmodel/config/yaml.hpp"
#include "costmodel/serving/serving_reader.hpp"

namespace served {

inline costmodel::ServingScenario scenario(const std::string& serving,
                                           const std::string& model = "llama-2-7b",
                                           const std::string& cluster = "dgx-h100", int devices = 8,
                                           const std::string& plan = "{tp: 1}") {
  const std::string text = "workload: inference\nmodel: " + model + "\ncluster: {base: " + cluster +
                           ", devices: " + std::to_string(devices) +
                           "}\nserving: {stack: vllm-0.6, " + serving + "}\nplan: " + plan + "\n";
  return read_serving(costmodel::parse_yaml(text, "served.yaml"), "served",
                      costmodel::config_path({}));
}

inline costmodel::ServingScenario usual(const std::string& plan = "{tp: 1, dp: 1}") {
  return scenario("input_tokens: 512, output_tokens: 128, concurrency: 32", "llama-2-7b",
                  "dgx-h100", 8, plan);
}

// One request of Llama 2 7B on one device of a cluster.
inline costmodel::ServingScenario on(const std::string& serving, const std::string& cluster) {
  const std::string text = "workload: inference\nmodel: llama-2-7b\ncluster: {base: " + cluster +
                           ", devices: 1}\nserving: {" + serving +
                           ", input_tokens: 8, output_tokens: 8, requests: 1}\nplan: {tp: 1}\n";
  return read_serving(costmodel::parse_yaml(text, "served.yaml"), "served",
                      costmodel::config_path({}));
}

}  // namespace served
