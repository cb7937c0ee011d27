// Runs one operator of an op list in isolation, on any device, with random data in the tensors that
// the list says it reads, keeps and writes.
#pragma once

#include <memory>
#include <vector>

#include "calibrate/measure/measurement.hpp"
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
  // `number`: the format of the weights and of the 2-byte tensors of the list. All arguments
  // outlive this.
  NodeBench(runtime::Device& device, runtime::Number number, const costmodel::OpList& list,
            std::size_t node, const NodeWeights& weights, const runtime::Place& place);
  ~NodeBench();
  NodeBench(const NodeBench&) = delete;
  NodeBench& operator=(const NodeBench&) = delete;

  void run(costmodel::Pass pass);

 private:
  class Room;
  const costmodel::Node& node_;
  const runtime::Place& place_;
  runtime::Device& device_;
  std::unique_ptr<Room> room_;
  runtime::OpCall call_;
};

// Times one run. It issues as many runs between two waits as take a millisecond, because a device
// runs asynchronously and a wait costs more than a small kernel.
Timing time_runs(const std::function<void()>& run, runtime::Memory& memory, const StopRule& rule,
                 const Clock& clock);

// An op list with a single product, or a single flash attention; `element`: bytes per element.
costmodel::OpList product_list(std::int64_t m, std::int64_t n, std::int64_t k, double element);
costmodel::OpList attention_list(const costmodel::FlashAttention& op, double element);

}  // namespace calibrate
