// Runs one layer on one rank, forward or backward, for one micro-batch: the op list's nodes in
// order, with the tensor-parallel collectives between. Allocates and frees each tensor exactly
// where costmodel::footprint says.
#pragma once

#include <vector>

#include "runtime/backend/arena.hpp"
#include "runtime/backend/device.hpp"
#include "runtime/ranks/collectives.hpp"
#include "runtime/training/layer_program.hpp"
#include "runtime/training/layer_state.hpp"

namespace runtime {

// The tensors that a micro-batch keeps in a layer between forward and backward, by tensor id.
using HeldTensors = std::vector<Block>;

// A layer and the coordinates of a micro-batch.
struct LayerRun {
  const LayerProgram& program;
  LayerState& state;
  LayerState* table;  // the tied token table for its output projection, or nullptr
  const Place& place;
  HeldTensors& held;
};

class LayerRunner {
 public:
  // `tensor_group`: the communicator of the tensor-parallel ranks. `number`: the format of weights
  // and activations. All outlive this.
  LayerRunner(Device& device, Number number, Communicator& tensor_group, int tag, Arena& arena);
  ~LayerRunner();
  LayerRunner(const LayerRunner&) = delete;
  LayerRunner& operator=(const LayerRunner&) = delete;

  // Takes the layer's input (none for the embedding) and returns its output (none for the head,
  // whose losses are added to loss_sum()).
  Block forward(const LayerRun& run, Block input);
  // Takes the output's gradient (none for the head) and returns the input's (none for the
  // embedding). Accumulates into the gradients of run.state and run.table.
  Block backward(const LayerRun& run, Block gradient);
  // The same for a split backward: the weight gradients of products are left to weight_gradients(),
  // and `pending` gets the gradients that they need, by tensor id. What else they need stays in
  // run.held.
  Block input_gradients(const LayerRun& run, Block gradient, HeldTensors& pending);
  void weight_gradients(const LayerRun& run, HeldTensors pending);

  // Of all micro-batches since clear_loss(). It stays in the device's memory until it is asked for,
  // because the host would have to wait for it; this waits.
  double loss_sum() const;
  void clear_loss();

 private:
  struct Pass;
  void run_nodes(Pass& pass, const std::vector<bool>& chosen, const std::vector<bool>& kept,
                 const std::vector<int>& last_reader);
  void recompute(Pass& pass);
  void make_statistics(Pass& pass, const costmodel::Node& node);
  void make_output(Pass& pass, const costmodel::Node& node);
  void make_result(Pass& pass, std::size_t index, bool fused);
  void run_node(Pass& pass, std::size_t index);
  void cross_entropy(const OpCall& call);
  Block differentiate_all(Pass& pass, Block gradient);
  void differentiate(Pass& pass, std::size_t index);
  void input_gradient(Pass& pass, std::size_t index, const std::vector<bool>& accumulate);
  void weight_gradient(Pass& pass, std::size_t index);
  OpCall call_of(Pass& pass, std::size_t index);
  void collective(costmodel::CollectiveKind kind, const Vector& in, const Vector& out);
  Block take(const costmodel::TensorInfo& info);

  // Activations are in `number_` or, where the op list says so, in fp32.
  Vector vector_of(const costmodel::TensorInfo& info, const Tensor& tensor) const;

  Device& device_;
  const Number number_;
  Communicator& tensor_;
  int tag_;
  Arena& arena_;
  double* loss_sum_;  // in the arena's memory
};

}  // namespace runtime
