// Which stretches of the compute stream are replayed from a graph. A stretch is known by two keys:
//
//   its shape    which operations, of which layers, in which order
//   its values   the shape, and every address and number that is given to them
//
// Until warmed_up() all is done by itself: memory is still being taken, and has other addresses
// later. So is a shape the first time, so that the device has made whatever it makes once (chosen
// algorithms, tables, scratch memory). Values of a shape that was done are captured, and replayed
// whenever they come again. Other addresses, as of another micro-batch's tensors, are
// other values: a graph is never changed, and never started for values that it was not made of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "runtime/backend/graph_recorder.hpp"

namespace runtime {

// Equal keys mean equal stretches.
using GraphKey = std::vector<std::uint64_t>;

struct GraphCounts {
  std::int64_t captured = 0;  // graphs made
  std::int64_t replayed = 0;  // stretches started from a graph that was there
  std::int64_t done = 0;      // stretches done operation by operation
  std::string refused;        // why some shapes are not captured, of the first; "" where all are
};

class GraphCache {
 public:
  // `recorder` outlives this. Of one shape so many graphs are kept, at least 1: as many sets of
  // addresses as one iteration has.
  GraphCache(GraphRecorder& recorder, std::size_t graphs_of_shape);
  ~GraphCache();
  GraphCache(const GraphCache&) = delete;
  GraphCache& operator=(const GraphCache&) = delete;

  void warmed_up() { warm_ = true; }
  // Does a stretch of so many operations; `each` asks the device for them one after the other.
  void run(const GraphKey& shape, const GraphKey& values, std::size_t operations,
           const std::function<void()>& each);
  const GraphCounts& counts() const { return counts_; }

 private:
  struct Made {
    GraphRecorder::Graph graph;
    std::int64_t last = 0;  // when it was started, in stretches
    bool again = false;     // more than once
  };
  struct Shape {
    std::map<GraphKey, Made> made;
    std::size_t wasted = 0;  // graphs given up that were never replayed
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
  std::map<GraphKey, Shape> shapes_;  // that were done
  GraphCounts counts_;
};

}  // namespace runtime
