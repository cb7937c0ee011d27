// Runs one layer on one rank, forward or backward, for one micro-batch: the op list's nodes in
// order, each tensor taken and given back exactly where costmodel::footprint says, and the
// tensor-parallel collectives between.
#pragma once

#include <vector>

#include "runtime/backend/arena.hpp"
#include "runtime/backend/device.hpp"
#include "runtime/ranks/collectives.hpp"
#include "runtime/training/layer_program.hpp"
#include "runtime/training/layer_state.hpp"

namespace runtime {

// What one micro-batch leaves in a layer between forward and backward: tensors by id.
using HeldTensors = std::vector<Block>;

// One layer and the place of one micro-batch in it.
struct LayerRun {
  const LayerProgram& program;
  LayerState& state;
  LayerState* table;  // the token table its output projection borrows, or nullptr
  const Place& place;
  HeldTensors& held;
};

class LayerRunner {
 public:
  // `tensor_group` over the tensor-parallel ranks, `number` of weights and activations. All outlive
  // this.
  LayerRunner(Device& device, Number number, Communicator& tensor_group, int tag, Arena& arena);

  // Takes the layer's input (none for the embedding), returns its output (none of the head, whose
  // losses add to loss_sum()).
  Block forward(const LayerRun& run, Block input);
  // Takes the gradient of the output (none of the head's), returns that of the input (none of the
  // embedding's). Adds to the gradients of run.state and run.table.
  Block backward(const LayerRun& run, Block gradient);

  double loss_sum() const { return loss_sum_; }
  void clear_loss() { loss_sum_ = 0; }

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
  void differentiate(Pass& pass, std::size_t index);
  void input_gradient(Pass& pass, std::size_t index, const std::vector<bool>& accumulate);
  void weight_gradient(Pass& pass, std::size_t index);
  OpCall call_of(Pass& pass, std::size_t index);
  void collective(costmodel::CollectiveKind kind, const Vector& in, const Vector& out);
  Block take(const costmodel::TensorInfo& info);

  // Activations are of the format or, where the op list says so, fp32.
  Vector vector_of(const costmodel::TensorInfo& info, const Tensor& tensor) const;

  Device& device_;
  const Number number_;
  Communicator& tensor_;
  int tag_;
  Arena& arena_;
  double loss_sum_ = 0;
};

}  // namespace runtime
