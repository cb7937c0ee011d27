// The seam between the engine and what computes: one pass of one operator over tensors in the
// device's memory (memory.hpp). The CPU's is in cpu_device.hpp.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "costmodel/operators/op_list.hpp"
#include "runtime/backend/graph_recorder.hpp"
#include "runtime/backend/memory.hpp"
#include "runtime/backend/streams.hpp"

namespace runtime {

// A tensor of the op list; empty where it is not held or not wanted.
struct Tensor {
  void* data = nullptr;
  std::size_t bytes = 0;
  std::span<float> floats() const { return {static_cast<float*>(data), bytes / sizeof(float)}; }
  template <class T>
  std::span<T> as() const {
    return {static_cast<T*>(data), bytes / sizeof(T)};
  }
  std::span<std::uint8_t> mask() const { return {static_cast<std::uint8_t*>(data), bytes}; }
  std::span<std::int64_t> ids() const {
    return {static_cast<std::int64_t*>(data), bytes / sizeof(std::int64_t)};
  }
};

// Where a rank's share lies in the whole model and batch.
struct Place {
  std::int64_t first_sample = 0;  // of the micro-batch, since training began
  std::int64_t sequences = 1;     // b
  std::int64_t sequence = 0;      // s
  std::int64_t first_row = 0;     // of the rank's tokens in its micro-batch (sequence parallel)
  std::int64_t heads = 0, kv_heads = 0, first_head = 0, all_heads = 0;  // rank's, and the model's
  std::int64_t head_dim = 0;
  std::int64_t first_token = 0;       // of the rank's share of the vocabulary
  std::int64_t vocab = 0;             // of the model, not padded
  std::uint64_t seed = 0, layer = 0;  // of the model's layers
  double dropout = 0;
  double loss_scale = 1;  // gradient of the loss with respect to one token's
};

struct OpCall {
  const costmodel::Node& node;
  const Place& place;
  std::array<Tensor, 4> inputs{};  // in the node's order
  Tensor output;
  std::array<Tensor, 4> saved{};  // in the node's order
  std::array<Tensor, 4> input_gradients{};
  std::array<bool, 4> accumulate{};  // whether to add to what the gradient holds
  Tensor output_gradient;
  Vector matrix, bias;                              // of one format
  std::span<float> matrix_gradient, bias_gradient;  // added to
  bool table_layout = false;                        // the matrix is [n, k]
};

// The same with another place, which outlives it.
inline OpCall at_place(const OpCall& call, const Place& place) {
  const auto& [node, its, inputs, output, saved, input_gradients, accumulate, output_gradient,
               matrix, bias, matrix_gradient, bias_gradient, table_layout] = call;
  return {node,        place,           inputs, output, saved,           input_gradients,
          accumulate,  output_gradient, matrix, bias,   matrix_gradient, bias_gradient,
          table_layout};
}

class Device {
 public:
  virtual ~Device() = default;
  virtual Memory& memory() = 0;  // where its tensors live, as long as this
  // Null where it has done what it was asked for when the call returns.
  virtual Streams* streams() { return nullptr; }
  // Null where none of its work can be replayed.
  virtual GraphRecorder* graphs() { return nullptr; }
  virtual void forward(const OpCall& call) = 0;
  // The gradient of the inputs, and of parameters of operators other than products.
  virtual void input_gradient(const OpCall& call) = 0;
  // Of a product; `call.inputs[0]` is what it read, whole.
  virtual void weight_gradient(const OpCall& call) = 0;

  // Whether a product and the GELU beside it are asked for in one call, as below; if so, what both
  // make is held at once.
  virtual bool fuses_activations() const { return false; }
  // A product and the activation of its result: what both make.
  virtual void forward_fused(const OpCall& linear, const OpCall& activation) {
    forward(linear);
    forward(activation);
  }
  // A product of the activation's result: `linear.input_gradients[0]` becomes the gradient of what
  // the activation read.
  virtual void input_gradient_fused(const OpCall& linear, const OpCall& activation) {
    input_gradient(linear);
    OpCall behind = activation;
    behind.output_gradient = behind.input_gradients[0] = linear.input_gradients[0];
    input_gradient(behind);
  }

  // Vocabulary-parallel cross-entropy in three parts; the rank's maxima, sums and target logits are
  // reduced between them. `rows` of each are in the logit statistics.
  virtual void logits_maximum(const OpCall& call) = 0;
  virtual void logits_exponentials(const OpCall& call) = 0;
  virtual void logits_loss(const OpCall& call) = 0;
};

}  // namespace runtime
