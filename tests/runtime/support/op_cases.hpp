// Every operator in shapes that are hard for kernels (odd widths, rows wider than a block, shared
// key heads, vocabulary shards), with its input data.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "runtime/backend/device.hpp"
#include "runtime/cpu/random.hpp"

namespace op_test {

using costmodel::Op;
using runtime::Place;

// A tensor's bytes; of floats unless said otherwise, which a device of another format has in that
// one, but for wide ones.
struct Buffer {
  std::vector<std::byte> bytes;
  bool floats = true, wide = false;
};

// What a call reads and writes, by number of a buffer; -1: nothing.
struct OpCase {
  std::string name;
  costmodel::Node node;
  Place place;
  std::vector<Buffer> buffers;
  std::vector<int> inputs, saved, input_gradients;
  int output = -1, output_gradient = -1;
  int matrix = -1, bias = -1, matrix_gradient = -1, bias_gradient = -1;
  bool table = false, accumulate = false;

  // Buffers of so many floats: normal ones, or unset.
  int floats(std::int64_t n, bool wide = false) {
    Buffer buffer{std::vector<std::byte>(static_cast<std::size_t>(n) * sizeof(float))};
    auto* const to = reinterpret_cast<float*>(buffer.bytes.data());
    for (std::int64_t i = 0; i < n; ++i)
      to[i] = runtime::cpu::normal(3, buffers.size(), static_cast<std::uint64_t>(i));
    buffer.wide = wide;
    return add(std::move(buffer));
  }
  int room(std::int64_t n, bool wide = false) {  // what overwrites must not read
    Buffer buffer{
        std::vector<std::byte>(static_cast<std::size_t>(n) * sizeof(float), std::byte{0xff})};
    buffer.wide = wide;
    return add(std::move(buffer));
  }
  int mask(std::int64_t n) {
    return add({std::vector<std::byte>(static_cast<std::size_t>(n)), false});
  }
  int ids(std::int64_t n, std::int64_t below) {
    Buffer buffer{std::vector<std::byte>(static_cast<std::size_t>(n) * sizeof(std::int64_t)),
                  false};
    auto* const to = reinterpret_cast<std::int64_t*>(buffer.bytes.data());
    for (std::int64_t i = 0; i < n; ++i) to[i] = (i * 7919 + 13) % below;
    return add(std::move(buffer));
  }

 private:
  int add(Buffer buffer) {
    buffers.push_back(std::move(buffer));
    return static_cast<int>(buffers.size()) - 1;
  }
};

// The operators, and their shapes.
inline costmodel::Node node_of(Op op, costmodel::Site site = costmodel::Site::other) {
  costmodel::Node node;
  node.site = site;
  node.op = std::move(op);
  return node;
}

inline OpCase linear_case(std::int64_t m, std::int64_t n, std::int64_t k, bool bias, bool table) {
  OpCase c{.name = "product", .node = node_of(costmodel::Linear{m, n, k, bias, false})};
  c.table = table;
  c.inputs = {c.floats(m * k)};
  c.output = c.room(m * n);
  c.output_gradient = c.floats(m * n);
  c.input_gradients = {c.room(m * k)};
  c.matrix = c.floats(k * n);
  c.matrix_gradient = c.floats(k * n, true);
  if (bias) c.bias = c.floats(n);
  if (bias) c.bias_gradient = c.floats(n, true);
  return c;
}

inline OpCase norm_case(std::int64_t rows, std::int64_t cols, bool layernorm, bool accumulate) {
  const auto kind =
      layernorm ? costmodel::Normalization::layernorm : costmodel::Normalization::rmsnorm;
  OpCase c{.name = layernorm ? "layer norm" : "RMS norm",
           .node = node_of(costmodel::Norm{rows, cols, kind})};
  c.accumulate = accumulate;
  c.inputs = {c.floats(rows * cols)};
  c.output = c.room(rows * cols);
  c.saved = {c.inputs[0], c.room(rows * (layernorm ? 2 : 1), true)};
  c.output_gradient = c.floats(rows * cols);
  c.input_gradients = {accumulate ? c.floats(rows * cols) : c.room(rows * cols)};
  c.matrix = c.floats(cols);
  c.matrix_gradient = c.floats(cols, true);
  if (layernorm) c.bias = c.floats(cols);
  if (layernorm) c.bias_gradient = c.floats(cols, true);
  return c;
}

inline OpCase activation_case(std::int64_t rows, std::int64_t cols, bool gated) {
  OpCase c{.name = gated ? "SwiGLU" : "GELU",
           .node = node_of(costmodel::Activation{rows, cols, gated, false})};
  const std::int64_t in = rows * cols * (gated ? 2 : 1);
  c.inputs = {c.floats(in)};
  c.output = c.room(rows * cols);
  c.output_gradient = c.floats(rows * cols);
  c.input_gradients = {c.room(in)};
  return c;
}

inline Place token_place(std::int64_t rows) {
  return {.first_sample = 5,
          .sequences = 1,
          .sequence = 2 * rows,
          .first_row = rows - 1,
          .heads = 1,
          .kv_heads = 1,
          .all_heads = 1,
          .head_dim = 2,
          .seed = 11,
          .layer = 3,
          .dropout = 0.3};
}

inline OpCase residual_case(std::int64_t rows, std::int64_t cols, bool bias, bool dropout) {
  OpCase c{.name = "residual",
           .node = node_of(costmodel::BiasDropoutAdd{rows, cols, bias, dropout, true}),
           .place = token_place(rows)};
  c.inputs = {c.floats(rows * cols), c.floats(rows * cols)};
  c.output = c.room(rows * cols);
  c.saved = {c.mask(dropout ? rows * cols : 0)};
  c.output_gradient = c.floats(rows * cols);
  c.input_gradients = {c.room(rows * cols), c.room(rows * cols)};
  if (bias) c.bias = c.floats(cols);
  if (bias) c.bias_gradient = c.floats(cols, true);
  return c;
}

inline OpCase dropout_case(std::int64_t rows, std::int64_t cols) {
  OpCase c{.name = "dropout",
           .node = node_of(costmodel::Dropout{rows, cols}),
           .place = token_place(rows)};
  c.inputs = {c.floats(rows * cols)};
  c.output = c.room(rows * cols);
  c.saved = {c.mask(rows * cols)};
  c.output_gradient = c.floats(rows * cols);
  c.input_gradients = {c.room(rows * cols)};
  return c;
}

inline OpCase cross_entropy_case(std::int64_t rows, std::int64_t cols, std::int64_t first,
                                 std::int64_t vocab) {
  OpCase c{.name = "cross-entropy",
           .node = node_of(costmodel::CrossEntropy{rows, cols, costmodel::LossKernel::flash}),
           .place = {.first_token = first, .vocab = vocab, .loss_scale = 0.01}};
  c.inputs = {c.floats(rows * cols)};
  c.saved = {c.room(rows * cols), c.ids(rows, vocab), c.room(3 * rows, true)};
  c.input_gradients = {c.room(rows * cols)};
  return c;
}

inline OpCase embedding_case(std::int64_t rows, std::int64_t cols, std::int64_t first) {
  OpCase c{.name = "embedding",
           .node = node_of(costmodel::Embedding{rows, cols, 37}),
           .place = {.first_token = first, .vocab = 100}};
  c.inputs = {c.ids(rows, 100)};
  c.output = c.room(rows * cols);
  c.output_gradient = c.floats(rows * cols);
  c.matrix = c.floats(37 * cols);
  c.matrix_gradient = c.floats(37 * cols, true);
  return c;
}

inline OpCase position_case(std::int64_t rows, std::int64_t cols) {
  OpCase c{.name = "position embedding",
           .node = node_of(costmodel::PositionEmbedding{rows, cols, 19}),
           .place = {.sequences = 4, .sequence = 13, .first_row = 17}};
  c.inputs = {c.floats(rows * cols)};
  c.output = c.room(rows * cols);
  c.output_gradient = c.floats(rows * cols);
  c.input_gradients = {c.room(rows * cols)};
  c.matrix = c.floats(19 * cols);
  c.matrix_gradient = c.floats(19 * cols, true);
  return c;
}

inline Place head_place(std::int64_t s, std::int64_t heads, std::int64_t kv_heads,
                        std::int64_t head_dim) {
  return {.first_sample = 3,
          .sequences = 2,
          .sequence = s,
          .heads = heads,
          .kv_heads = kv_heads,
          .first_head = heads,
          .all_heads = 2 * heads,
          .head_dim = head_dim,
          .seed = 5,
          .layer = 2,
          .dropout = 0.1};
}

inline std::int64_t qkv_size(const Place& p) {
  return p.sequences * p.sequence * (p.heads + 2 * p.kv_heads) * p.head_dim;
}

inline OpCase rotary_case(const Place& p) {
  OpCase c{.name = "rotary",
           .node = node_of(
               costmodel::Rotary{p.sequences * p.sequence, (p.heads + p.kv_heads) * p.head_dim}),
           .place = p};
  c.inputs = {c.floats(qkv_size(p))};
  c.output = c.room(qkv_size(p));
  c.output_gradient = c.floats(qkv_size(p));
  c.input_gradients = {c.room(qkv_size(p))};
  return c;
}

inline OpCase qk_norm_case(const Place& p, bool layernorm) {
  OpCase c = rotary_case(p);
  c.name = "norm of queries and keys";
  c.node.op = costmodel::Norm{
      p.sequences * p.sequence * (p.heads + p.kv_heads), p.head_dim,
      layernorm ? costmodel::Normalization::layernorm : costmodel::Normalization::rmsnorm, 2};
  c.matrix = c.floats(2 * p.head_dim);
  c.matrix_gradient = c.floats(2 * p.head_dim, true);
  if (layernorm) c.bias = c.floats(2 * p.head_dim);
  if (layernorm) c.bias_gradient = c.floats(2 * p.head_dim, true);
  return c;
}

inline OpCase flash_case(const Place& p) {
  OpCase c{.name = "flash attention",
           .node = node_of(costmodel::FlashAttention{p.sequences, p.sequence, p.heads, p.kv_heads,
                                                     p.head_dim, true}),
           .place = p};
  const std::int64_t tokens = p.sequences * p.sequence;
  c.inputs = {c.floats(qkv_size(p))};
  c.output = c.room(tokens * p.heads * p.head_dim);
  c.saved = {c.inputs[0], c.room(tokens * p.heads, true), c.output};
  c.output_gradient = c.floats(tokens * p.heads * p.head_dim);
  c.input_gradients = {c.room(qkv_size(p))};
  return c;
}

inline OpCase scores_case(const Place& p) {
  const std::int64_t batch = p.sequences * p.heads, n = batch * p.sequence * p.sequence;
  OpCase c{.name = "attention scores",
           .node = node_of(costmodel::AttentionScores{batch, p.sequence, p.head_dim}),
           .place = p};
  c.inputs = {c.floats(qkv_size(p))};
  c.output = c.room(n);
  c.output_gradient = c.floats(n);
  c.input_gradients = {c.floats(qkv_size(p))};
  return c;
}

inline OpCase context_case(const Place& p) {
  const std::int64_t batch = p.sequences * p.heads, n = batch * p.sequence * p.sequence;
  OpCase c{.name = "attention context",
           .node = node_of(costmodel::AttentionContext{batch, p.sequence, p.head_dim}),
           .place = p};
  c.inputs = {c.floats(n), c.floats(qkv_size(p))};
  c.output = c.room(batch * p.sequence * p.head_dim);
  c.output_gradient = c.floats(batch * p.sequence * p.head_dim);
  c.input_gradients = {c.room(n), c.room(qkv_size(p))};
  return c;
}

inline OpCase softmax_case(const Place& p) {
  const std::int64_t rows = p.sequences * p.heads * p.sequence;
  OpCase c{
      .name = "softmax", .node = node_of(costmodel::Softmax{rows, p.sequence, true}), .place = p};
  c.inputs = {c.floats(rows * p.sequence)};
  c.output = c.room(rows * p.sequence);
  c.saved = {c.output};
  c.output_gradient = c.floats(rows * p.sequence);
  c.input_gradients = {c.room(rows * p.sequence)};
  return c;
}

inline OpCase attention_dropout_case(const Place& p) {
  const std::int64_t rows = p.sequences * p.heads * p.sequence;
  OpCase c = dropout_case(rows, p.sequence);
  c.name = "attention dropout";
  c.node.region = costmodel::Region::attention_core;
  c.place = p;
  return c;
}

inline std::vector<OpCase> all_cases() {
  std::vector<OpCase> all{linear_case(5, 7, 3, true, false),
                          linear_case(33, 65, 129, true, false),
                          linear_case(64, 128, 32, false, false),
                          linear_case(40, 50, 24, false, true),
                          norm_case(7, 33, true, false),
                          norm_case(3, 1025, true, true),
                          norm_case(2, 5000, false, false),
                          norm_case(65, 64, false, true),
                          activation_case(3, 37, false),
                          activation_case(5, 1031, true),
                          residual_case(7, 33, true, true),
                          residual_case(9, 64, false, true),
                          residual_case(5, 31, true, false),
                          dropout_case(13, 7),
                          cross_entropy_case(9, 33, 0, 33),
                          cross_entropy_case(5, 5000, 5000, 9990),
                          cross_entropy_case(3, 64, 128, 100),
                          embedding_case(23, 5, 0),
                          embedding_case(23, 33, 37),
                          embedding_case(300, 9, 37),  // each token several times
                          position_case(26, 7),
                          position_case(5, 33)};
  for (const Place& p : {head_place(16, 4, 4, 8), head_place(13, 6, 2, 4), head_place(1, 2, 1, 2),
                         head_place(130, 2, 1, 64), head_place(70, 1, 1, 128)}) {
    for (auto make :
         {rotary_case, flash_case, scores_case, context_case, softmax_case, attention_dropout_case})
      all.push_back(make(p));
    for (const bool layernorm : {false, true}) all.push_back(qk_norm_case(p, layernorm));
  }
  return all;
}

}  // namespace op_test
