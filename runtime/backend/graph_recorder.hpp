// The seam to what a device makes of a stretch of its compute stream, to be started as one later: a
// CUDA graph. It holds addresses and numbers as they were when it was recorded.
#pragma once

#include <cstdint>

namespace runtime {

class GraphRecorder {
 public:
  using Graph = int;

  virtual ~GraphRecorder() = default;
  // What the calling thread asks the device and its memory for from now on is noted, and not done.
  // No memory is taken, and nothing waited for, until end().
  virtual void begin() = 0;
  // Throws std::runtime_error where what was asked for cannot be replayed; then nothing is recorded
  // any more, as after cancel().
  virtual Graph end() = 0;
  virtual void cancel() noexcept = 0;
  // In the compute stream, behind all that it was given before.
  virtual void start(Graph graph) = 0;
  virtual void forget(Graph graph) noexcept = 0;
  // Another number when memory of the device's own, which graphs have the address of, has moved:
  // those made before are never started again.
  virtual std::int64_t generation() const = 0;
};

}  // namespace runtime
