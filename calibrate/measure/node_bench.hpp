// Runs one operator of an op list in isolation, on any device, with random data in the tensors that
// the list says it reads, keeps and writes. Token ids and labels are drawn from the whole
// vocabulary; masks are those of the first forward pass.
#pragma once

#include <memory>
#include <vector>

#include "calibrate/measure/random_block.hpp"
#include "costmodel/operators/op_list.hpp"
#include "runtime/backend/device.hpp"

namespace calibrate {

// The parameters of a node, in elements; 0: none.
struct NodeWeights {
  std::int64_t matrix = 0, bias = 0;
  bool table = false;  // the matrix is [n, k]
};

class NodeBench {
 public:
  // `block`: in the device's memory, fills the tensors. `number`: the format of the weights and of
  // the 2-byte tensors of the list. All arguments but the weights outlive this.
  NodeBench(runtime::Device& device, RandomBlock& block, runtime::Number number,
            const costmodel::OpList& list, std::size_t node, const NodeWeights& weights,
            const runtime::Place& place);
  ~NodeBench();
  NodeBench(const NodeBench&) = delete;
  NodeBench& operator=(const NodeBench&) = delete;

  void run(costmodel::Pass pass);
  // Writes what the operator that runs before this one in a layer has just written: forward the
  // result of the node before, which this one may read, backward the output's gradient.
  void write_predecessor(costmodel::Pass pass);

 private:
  class Room;
  const costmodel::Node& node_;
  const runtime::Place& place_;
  runtime::Device& device_;
  RandomBlock& block_;
  std::unique_ptr<Room> room_;
  runtime::OpCall call_;
  std::vector<runtime::Vector> fresh_inputs_;  // written by the node before
  runtime::Vector output_gradient_;
};

// An op list with a single product, or a single flash attention; `element`: bytes per element.
costmodel::OpList product_list(std::int64_t m, std::int64_t n, std::int64_t k, double element);
costmodel::OpList attention_list(const costmodel::FlashAttention& op, double element);

}  // namespace calibrate
