// An op list prepared for execution: the lifetime of each tensor, by the same rules as
// costmodel::footprint, so that the memory predicted is the memory held.
#pragma once

#include <vector>

#include "costmodel/operators/lifetimes.hpp"

namespace runtime {

struct LayerProgram {
  costmodel::OpList list;
  costmodel::Recomputed recomputed = costmodel::Recomputed::nothing;
  std::vector<bool> again;             // by node: recomputed before backward
  std::vector<bool> kept;              // by tensor: kept from forward to backward
  std::vector<bool> held;              // by tensor: held when backward begins, after recomputation
  std::vector<int> last_reader;        // by tensor: last node that reads it; -1: none
  std::vector<int> last_reader_again;  // the same among recomputed nodes
  std::vector<int> first_saver;        // by tensor: first node that saves it for its backward
  std::vector<bool> product_input;     // by tensor: a product saves it for its weight gradient
  // By node: for a residual that adds a product's bias, the index of that product; for such a
  // product, -2, because it adds no bias itself; -1 for all others.
  std::vector<int> bias_of;
  // By node: for a product whose bias a residual adds, whether both see the same output gradient
  // (no collective between them changes it), so that the bias gradient can be summed with the
  // weights'.
  std::vector<bool> sums_bias;
  // By node: whether a product's next node is the GELU of its result (before_gelu), or its previous
  // node the GELU that made its input (behind_gelu), and nothing else reads the tensor between.
  std::vector<bool> before_gelu, behind_gelu;
};

// For layers of gpt and llama models only; see unsupported().
LayerProgram layer_program(costmodel::OpList list, costmodel::Recomputed recomputed);

// Whether the node returns its input unchanged (the identity before a column-parallel product).
bool in_place(const costmodel::Node& node);

}  // namespace runtime
