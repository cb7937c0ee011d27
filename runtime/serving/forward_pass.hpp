// Runs one layer of a served model on one rank: the nodes of its op list in order, forward only,
// with the tensor-parallel collectives between. A tensor is freed after its last reader.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "costmodel/base/units.hpp"
#include "runtime/backend/arena.hpp"
#include "runtime/backend/device.hpp"
#include "runtime/ranks/collectives.hpp"
#include "runtime/training/layer_program.hpp"
#include "runtime/training/parameters.hpp"

namespace runtime {

// A layer's weights on one rank, and nothing else: no gradients, no optimizer.
struct LayerWeights {
  LayerParameters layout;
  Block values;
};

struct LayerPass {
  const LayerProgram& program;
  const LayerWeights& weights;
  const LayerWeights* table;  // the tied token table for the logits, or nullptr
  const Place& place;
  std::span<const std::int64_t> ids = {};  // of the embedding's tokens
  const cpu::CachedKeys* cache = nullptr;  // of a block
};

class ForwardPass {
 public:
  // All outlive this.
  ForwardPass(Device& device, Communicator& tensor_group, int tag, Arena& arena);

  // Takes the layer's input (none for the embedding) and returns its output.
  Block run(const LayerPass& pass, Block input);

  // Operators on the thread's clock, collectives left out, since restart_clock(); 0 unless clocked.
  costmodel::Seconds operators() const { return operators_; }
  void restart_clock() { operators_ = {}; }
  void clocked(bool on) { clocked_ = on; }

 private:
  using Tensors = std::vector<Block>;  // by tensor id
  OpCall call_of(const LayerPass& pass, std::size_t index, const Tensors& tensors);
  void compute(const LayerPass& pass, const OpCall& call);
  void run_node(const LayerPass& pass, std::size_t index, Tensors& tensors);
  void collective(costmodel::CollectiveKind kind, const Tensor& in, const Tensor& out);
  Block take(const costmodel::TensorInfo& info);

  Device& device_;
  Communicator& tensor_;
  int tag_;
  Arena& arena_;
  bool clocked_ = false;
  costmodel::Seconds operators_;
};

}  // namespace runtime
