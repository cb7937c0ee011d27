// The interface between the engine and a compute device: it runs one pass (forward, input gradient,
// weight gradient) of one operator on tensors in the device's memory (memory.hpp). Implementations:
// devices/cpu_device.hpp for the CPU, kernels/kernel_device_class.hpp for GPUs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "costmodel/operators/op_list.hpp"
#include "runtime/backend/graph_recorder.hpp"
#include "runtime/backend/memory.hpp"
#include "runtime/backend/streams.hpp"
#include "runtime/cpu/cached_attention.hpp"

namespace runtime {

// A tensor of the op list; empty when it is absent or not requested.
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

// The coordinates of a rank's shard in the unsharded model and global batch.
struct Place {
  std::int64_t first_sample = 0;  // first sample of the micro-batch, counted since training began
  std::int64_t sequences = 1;     // b
  std::int64_t sequence = 0;      // s
  std::int64_t first_row = 0;     // of the rank's tokens in the micro-batch (sequence parallel)
  std::int64_t position = 0;      // of a sequence's first token: so many are cached before it
  std::int64_t heads = 0, kv_heads = 0, first_head = 0, all_heads = 0;  // rank's, last the model's
  std::int64_t head_dim = 0;
  std::int64_t first_token = 0;       // first token id of the rank's vocabulary shard
  std::int64_t vocab = 0;             // of the model, unpadded
  std::uint64_t seed = 0, layer = 0;  // layer: index in the model
  double dropout = 0;
  double loss_scale = 1;  // gradient of the batch loss with respect to one token's loss
};

struct OpCall {
  const costmodel::Node& node;
  const Place& place;
  std::array<Tensor, 4> inputs{};  // in the node's order
  Tensor output;
  std::array<Tensor, 4> saved{};  // in the node's order
  std::array<Tensor, 4> input_gradients{};
  std::array<bool, 4> accumulate{};  // add to the input gradient instead of overwriting it
  Tensor output_gradient;
  Vector matrix, bias;                              // both in the same format
  std::span<float> matrix_gradient, bias_gradient;  // accumulated into
  bool table_layout = false;                        // the matrix is [n, k]
};

// A copy of the call with another place; `place` outlives it.
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
  virtual Memory& memory() = 0;  // of its tensors; lives as long as this
  // Null for a synchronous device, whose work is done when a call returns.
  virtual Streams* streams() { return nullptr; }
  // Null when the device's work cannot be captured and replayed as graphs.
  virtual GraphRecorder* graphs() { return nullptr; }
  // Sentences on what it has computed otherwise than it was asked, for the report of a run.
  virtual std::vector<std::string> notes() const { return {}; }
  virtual void forward(const OpCall& call) = 0;
  // The gradients of the inputs, and of the parameters of all operators but products.
  virtual void input_gradient(const OpCall& call) = 0;
  // Attention in place of forward(): appends the keys and values of the call's tokens to the cache,
  // then attends to all of the cache. Only CPUs have it.
  virtual void cached_attention(const OpCall& /*call*/, const cpu::CachedKeys& /*cache*/) {
    throw std::logic_error("the device has no attention to cached keys");
  }
  // For products only. `call.inputs[0]` is the forward input, already gathered over the tensor
  // ranks when the kept one is sharded along the sequence.
  virtual void weight_gradient(const OpCall& call) = 0;

  // Whether the engine calls a product and its adjacent GELU as one fused operation (below); both
  // outputs are then held at once.
  virtual bool fuses_activations() const { return false; }
  // Fused forward: a product and the activation of its result. Writes both outputs.
  virtual void forward_fused(const OpCall& linear, const OpCall& activation) {
    forward(linear);
    forward(activation);
  }
  // Fused backward of a product whose input is the activation's output: writes the gradient of the
  // activation's input to `linear.input_gradients[0]`.
  virtual void input_gradient_fused(const OpCall& linear, const OpCall& activation) {
    input_gradient(linear);
    OpCall behind = activation;
    behind.output_gradient = behind.input_gradients[0] = linear.input_gradients[0];
    input_gradient(behind);
  }

  // Vocabulary-parallel cross-entropy in three parts. Between them the caller all-reduces the row
  // maxima, the sums and the target logits over the tensor ranks. The logit statistics hold `rows`
  // values of each.
  virtual void logits_maximum(const OpCall& call) = 0;
  virtual void logits_exponentials(const OpCall& call) = 0;
  virtual void logits_loss(const OpCall& call) = 0;
};

}  // namespace runtime
