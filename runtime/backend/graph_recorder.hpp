// The interface to capturing a sequence of operations on a device's compute stream and replaying it
// with one launch: a CUDA graph. A graph keeps the addresses and numbers it was captured with.
#pragma once

#include <cstdint>

namespace runtime {

class GraphRecorder {
 public:
  using Graph = int;

  virtual ~GraphRecorder() = default;
  // Starts a capture: the calling thread's operations on the device and its memory are recorded,
  // not executed. Until end() no memory may be allocated and nothing waited for.
  virtual void begin() = 0;
  // Throws std::runtime_error when an operation cannot be captured; the capture is then cancelled.
  virtual Graph end() = 0;
  virtual void cancel() noexcept = 0;
  // Launches the graph on the compute stream, after all earlier work.
  virtual void start(Graph graph) = 0;
  virtual void forget(Graph graph) noexcept = 0;
  // Changes when scratch memory that captured graphs refer to has moved; graphs of an older
  // generation are never launched again.
  virtual std::int64_t generation() const = 0;
};

}  // namespace runtime
