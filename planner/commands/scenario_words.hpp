// A scenario in words: a model's name where a scenario may stand, and --gpus, --cluster, --batch,
// --sequence, --precision and --framework, which set values as --set does.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "costmodel/config/search_path.hpp"
#include "costmodel/config/value.hpp"
#include "planner/commands/options.hpp"

namespace planner {

struct Gpus {
  std::int64_t devices = 0;  // 0: not said
  std::string device;        // empty: not said
};

// "64xh100", "64 h100", "8x4090", "h100:64" and "64". Throws ConfigError for what is none of them.
Gpus read_gpus(const std::string& text);

// What the words set: assignments of a scenario, with what was chosen for it under `assumed`.
// Throws ConfigError for a device, cluster or stack of that name that is not known.
std::vector<std::string> word_assignments(const Options& options,
                                          const costmodel::ConfigPath& path);

// The scenario of a model (a name, or the file of one) with these assignments: a plan that is
// searched, and what costmodel::assume_training() adds. Throws ConfigError where no devices are
// given.
costmodel::Value scenario_of_model(const std::string& model,
                                   const std::vector<std::string>& assignments,
                                   const costmodel::ConfigPath& path);

// The file of a scenario that an operand names. Of a model the scenario is made, and is from then
// on what loaded() gives for the name returned.
std::string scenario_operand(const std::string& operand, const Options& options,
                             const costmodel::ConfigPath& path);

}  // namespace planner
