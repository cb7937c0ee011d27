// The parameters of one layer on one rank: where each lies in the layer's flat memory, which part
// of the whole tensor it is, and how it begins. Values come from the place in the whole, so that
// every way of cutting a model starts from the same model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "costmodel/model/model_spec.hpp"
#include "costmodel/operators/op_list.hpp"
#include "costmodel/operators/transformer.hpp"

namespace runtime {

// Columns [local, local + count) of a rank are columns [global, ...) of the whole.
struct ColumnPart {
  std::int64_t local = 0, count = 0, global = 0;
};

enum class Initial { zeros, ones, normal };

struct Parameter {
  std::string name;  // of the whole tensor: "layer 3 QKV weight"
  std::int64_t rows = 0, cols = 0;
  std::int64_t first_row = 0;    // in the whole
  std::int64_t global_cols = 0;  // of the whole
  std::vector<ColumnPart> columns;
  Initial initial = Initial::zeros;
  double spread = 0;       // standard deviation of Initial::normal
  std::size_t offset = 0;  // in the layer's memory, elements
  // Each tensor rank sees some of the tokens (or heads) only: gradients are summed over them.
  bool partial = false;
  std::size_t size() const { return static_cast<std::size_t>(rows * cols); }
};

// Which parameters a node uses; -1: none.
struct NodeParameters {
  int matrix = -1, bias = -1;
};

struct LayerParameters {
  std::vector<Parameter> tensors;
  std::vector<NodeParameters> nodes;  // by node of the op list
  std::size_t size = 0;               // elements
  bool borrows_table = false;         // its output projection is the token table of the same rank
};

struct LayerPlace {
  costmodel::LayerKind kind = costmodel::LayerKind::block;
  std::int64_t number = 0;  // among the blocks
  int tp_rank = 0;
  bool borrows_table = false;
};

// Products are [k, n], row by row; token table and output projection [vocabulary, hidden]. `list`
// is the rank's, `whole` the same layer without tensor parallelism.
LayerParameters layer_parameters(const costmodel::OpList& list, const costmodel::OpList& whole,
                                 const costmodel::ModelSpec& model, const LayerPlace& place,
                                 bool sequence_parallel);

inline constexpr std::string_view token_table_name = "token embedding table";

// First values (normal ones as GPT-2's: 0.02, over sqrt(2·layers) before a residual).
void initialise(const LayerParameters& layer, std::uint64_t seed, std::span<float> values);

}  // namespace runtime
