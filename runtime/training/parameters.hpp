// The parameters of one layer on one rank: the offset of each in the layer's flat buffer, its part
// of the unsharded tensor, and its initial values, which depend only on the position in the
// unsharded tensor, so that every parallel plan starts from the same model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "costmodel/model/model_spec.hpp"
#include "costmodel/operators/op_list.hpp"
#include "costmodel/operators/transformer.hpp"

namespace runtime {

// The rank's columns [local, local + count) are columns [global, global + count) of the unsharded
// tensor.
struct ColumnPart {
  std::int64_t local = 0, count = 0, global = 0;
};

enum class Initial { zeros, ones, normal };

struct Parameter {
  // Of the unsharded tensor: "layer 3 QKV weight". Its random stream is that of the name.
  std::string name;
  std::int64_t rows = 0, cols = 0;
  std::int64_t first_row = 0;    // in the unsharded tensor
  std::int64_t global_cols = 0;  // of the unsharded tensor
  std::vector<ColumnPart> columns;
  Initial initial = Initial::zeros;
  double spread = 0;       // standard deviation of Initial::normal
  std::size_t offset = 0;  // elements, in the layer's flat buffer
  // Each tensor rank computes the gradient from a part of the tokens (or heads), so gradients are
  // summed over the tensor ranks.
  bool partial = false;
  bool token_table = false;  // of the embedding, and of the output projection tied to it
  std::size_t size() const { return static_cast<std::size_t>(rows * cols); }
};

// The parameters of a node; -1: none.
struct NodeParameters {
  int matrix = -1, bias = -1;
};

struct LayerParameters {
  std::vector<Parameter> tensors;
  std::vector<NodeParameters> nodes;  // by node of the op list
  std::size_t size = 0;               // elements
  bool borrows_table = false;         // its output projection is the same rank's token table (tied)
};

struct LayerPlace {
  costmodel::LayerKind kind = costmodel::LayerKind::block;
  std::int64_t number = 0;  // index among the transformer blocks
  int tp_rank = 0;
  bool borrows_table = false;
};

// Weight matrices are [k, n], row-major; the token table and the output projection [vocabulary,
// hidden]. `list` is the rank's op list, `whole` that of the same layer without tensor parallelism.
LayerParameters layer_parameters(const costmodel::OpList& list, const costmodel::OpList& whole,
                                 const costmodel::ModelSpec& model, const LayerPlace& place,
                                 bool sequence_parallel);

// Writes the initial values (normal ones as in GPT-2: deviation 0.02, before a residual 0.02 /
// sqrt(2 · layers)), on `threads` threads; the values do not depend on how many.
void initialise(const LayerParameters& layer, std::uint64_t seed, std::span<float> values,
                int threads = 1);

}  // namespace runtime
