// Builds scenarios from YAML text inside a test.
#pragma once

#include <string>

#include "costmodel/config/yaml.hpp"
#include "costmodel/scenario/scenario.hpp"
#include "tests/costmodel/support/fixtures.hpp"

namespace scenarios {

// A model and its training, to which a cluster belongs.
inline const std::string tiny =
    "model: gpt-tiny\n"
    "training: {global_batch: 16, sequence: 128, precision: fp32, stack: shardplan-cpu}\n";

// As if it stood in a file test.yaml.
inline costmodel::Scenario read(const std::string& yaml) {
  return costmodel::read_scenario(costmodel::parse_yaml(yaml, "test.yaml"), "test",
                                  fixtures::configs());
}

// What is wrong with the plan of a scenario that is made here; "" for nothing.
template <typename Make>
std::string fault_of(const Make& make) {
  try {
    costmodel::resolve_plan(make());
    return "";
  } catch (const costmodel::ConfigError& error) {
    return error.what();
  }
}

inline std::string group(const std::string& name, const std::string& base, int devices) {
  return "{name: " + name + ", base: " + base + ", devices: " + std::to_string(devices) + "}";
}

// A cluster of such groups, and what joins them.
inline std::string joined(const std::string& groups, const std::string& bandwidth = "25 GB/s") {
  return "cluster: {groups: [" + groups + "], join: {bandwidth_bytes_per_s: " + bandwidth +
         ", latency_s: 5 us}}\n";
}

// So many H100s beside so many A100s.
inline std::string mixed(int h100, int a100, const std::string& bandwidth = "25 GB/s") {
  return joined(group("h100", "dgx-h100", h100) + ", " + group("a100", "dgx-a100", a100),
                bandwidth);
}

}  // namespace scenarios
