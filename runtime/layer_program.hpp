// An op list made ready to run: which tensors live how long. The same rules by which
// costmodel::footprint counts, so that what is counted is what is held.
#pragma once

#include <vector>

#include "costmodel/op_list.hpp"

namespace runtime {

struct LayerProgram {
  costmodel::OpList list;
  costmodel::Recomputed recomputed = costmodel::Recomputed::nothing;
  std::vector<bool> again;             // by node: forward runs again before backward
  std::vector<bool> kept;              // by tensor: from forward to backward
  std::vector<bool> held;              // by tensor: when backward begins, everything recomputed
  std::vector<int> last_reader;        // by tensor: last node that reads it, -1 for none
  std::vector<int> last_reader_again;  // the same among nodes that run again
  std::vector<int> first_saver;        // by tensor: first node that keeps it for its backward
  // By node: of a residual that adds the bias, the product whose bias it is; of that product, -2:
  // it adds none itself. -1: neither.
  std::vector<int> bias_of;
};

// Takes layers of gpt and llama models; see unsupported().
LayerProgram layer_program(costmodel::OpList list, costmodel::Recomputed recomputed);

// A node that returns its input as it is (the identity before a column-parallel product).
bool in_place(const costmodel::Node& node);

}  // namespace runtime
