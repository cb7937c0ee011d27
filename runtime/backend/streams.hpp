// The seam to what a device does beside computing: streams, each of which does in order what it is
// given, and events, which say how far a stream has come. Devices that compute when they are asked
// have none (Device::streams()). No call but time() waits. Threads take turns.
#pragma once

#include <cstddef>
#include <functional>

#include "costmodel/base/units.hpp"

namespace runtime {

class Streams {
 public:
  using Stream = int;
  using Event = int;
  // In which Memory and Device do what they are asked for.
  static constexpr Stream compute = 0;

  virtual ~Streams() = default;
  virtual Stream make_stream() = 0;
  // Passed already; lives as long as this.
  virtual Event make_event() = 0;
  // It is passed when the stream has done all that it was given until now.
  virtual void record(Stream stream, Event event) = 0;
  // What the stream is given from now on waits for what the event was last recorded for.
  virtual void wait(Stream stream, Event event) = 0;
  virtual void copy(Stream stream, const void* from, void* to, std::size_t bytes) = 0;
  // Throws what went wrong on the device.
  virtual bool passed(Event event) = 0;
  // From when the one was passed to when the other was. Waits for both.
  virtual costmodel::Seconds time(Event since, Event event) = 0;
  // Called again and again while Memory::wait() waits; what it throws ends the waiting. Empty:
  // none.
  virtual void watch(std::function<void()> look) = 0;
};

}  // namespace runtime
