// Decides which sequences of operations on the compute stream run from a captured graph. A sequence
// ("stretch") has two keys:
//
//   shape    its operations, their layers and their order
//   values   the shape plus every address and number passed to them
//
// Before warmed_up() every stretch runs operation by operation, because memory is still being
// allocated and addresses will change. So does the first run of each shape, so that the device has
// made what it makes once (chosen algorithms, tables, scratch memory). Later, values seen for the
// first time are captured, and replayed whenever they recur. A graph is never updated and never
// launched for other values: a micro-batch with other addresses gets a graph of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "runtime/backend/graph_recorder.hpp"

namespace runtime {

// Equal keys mean identical stretches.
using GraphKey = std::vector<std::uint64_t>;

struct GraphCounts {
  std::int64_t captured = 0;  // graphs captured
  std::int64_t replayed = 0;  // stretches launched from an existing graph
  std::int64_t done = 0;      // stretches run operation by operation
  std::string refused;        // why the first uncapturable shape was refused; "" when none was
};

class GraphCache {
 public:
  // `recorder` outlives this. Keeps at most `graphs_of_shape` (at least 1) graphs per shape: one
  // for each set of addresses that an iteration uses.
  GraphCache(GraphRecorder& recorder, std::size_t graphs_of_shape);
  ~GraphCache();
  GraphCache(const GraphCache&) = delete;
  GraphCache& operator=(const GraphCache&) = delete;

  void warmed_up() { warm_ = true; }
  // Runs a stretch of `operations` operations, replayed or one by one; `each` issues them to the
  // device.
  void run(const GraphKey& shape, const GraphKey& values, std::size_t operations,
           const std::function<void()>& each);
  const GraphCounts& counts() const { return counts_; }

 private:
  struct Made {
    GraphRecorder::Graph graph;
    std::int64_t last = 0;  // when it was last launched, counted in stretches
    bool again = false;     // launched more than once
  };
  struct Shape {
    std::map<GraphKey, Made> made;
    std::size_t wasted = 0;  // evicted graphs that were never replayed
    bool refused = false;
  };

  void one_by_one(const std::function<void()>& each);
  void start(Made& made);
  void make_room(Shape& shape);
  void capture(Shape& shape, const GraphKey& values, const std::function<void()>& each);
  void refuse(Shape& shape, const std::string& reason);
  void forget_all() noexcept;

  GraphRecorder& recorder_;
  const std::size_t graphs_of_shape_;
  bool warm_ = false;
  std::int64_t generation_;
  std::int64_t stretches_ = 0;
  std::map<GraphKey, Shape> shapes_;  // shapes that have run
  GraphCounts counts_;
};

}  // namespace runtime
