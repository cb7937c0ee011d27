// Fields and values that a text sets, in the words of Hydra ("model.num_layers=8") or as Python
// ("cfg.model.num_layers = 8").
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "costmodel/base/error.hpp"

namespace planner {

struct SetField {
  std::string field;                // "model.num_layers"
  std::vector<std::string> values;  // of a list its items, else one; true, false and null in small
  costmodel::Mark mark;
  std::string unknown;  // what of the value the script does not say: "$TP"; else ""
  std::string name;     // as the file has it, where `field` is another name of it; else ""
};

struct OverridesText {
  std::vector<SetField> fields;       // in the order written
  std::vector<std::string> computed;  // what Python computes: "model.x = f(y)"
  std::string recipe;                 // "llama3_8b_pretrain_config"; empty: not said
  std::int64_t world_size = 0;        // devices; 0: not said
  std::int64_t per_node = 0;          // of them on a node; 0: not said
  bool branches = false;              // conditions or loops
  bool by_variable = false;           // world_size is that of the script's WORLD_SIZE
};

// Throws costmodel::ConfigError when the script cannot be read.
OverridesText read_overrides(const std::string& text, const std::string& file);

}  // namespace planner
