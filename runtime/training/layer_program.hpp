// An op list made ready to run: which tensors live how long. The same rules by which
// costmodel::footprint counts, so that what is counted is what is held.
#pragma once

#include <vector>

#include "costmodel/operators/op_list.hpp"

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
  // By node: of a product whose bias a residual adds, whether what it sees of the gradient is what
  // the residual sees of it, so that the bias's gradient can be summed with the weights'.
  std::vector<bool> sums_bias;
  // By node: of a product, whether the next is the GELU of its result, or the one before the GELU
  // that made its input; and nothing else reads what is between.
  std::vector<bool> before_gelu, behind_gelu;
};

// Takes layers of gpt and llama models; see unsupported().
LayerProgram layer_program(costmodel::OpList list, costmodel::Recomputed recomputed);

// A node that returns its input as it is (the identity before a column-parallel product).
bool in_place(const costmodel::Node& node);

}  // namespace runtime
