// Checkpoints on hubs that have the sizes of a model in configs/models under another name.
#pragma once

#include <string_view>

namespace costmodel {

struct Checkpoint {
  std::string_view name;      // what its name begins with, without its owner: "DeepSeek-R1"
  std::string_view sizes_of;  // "DeepSeek-V3"; empty: no model of ours, though it begins like one
  bool towers = false;        // it has images or sound too, which that model lacks
};

// That with which `name`, without an owner, begins, whatever its case; null: none. What follows in
// the name is no digit.
const Checkpoint* checkpoint_called(std::string_view name);

}  // namespace costmodel
