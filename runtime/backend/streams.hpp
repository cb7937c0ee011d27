// The interface to a device's asynchronous streams and events, as in CUDA: a stream runs its
// operations in order; an event marks a point in a stream. Synchronous devices have none
// (Device::streams() is null). Only time() blocks. Thread-safe.
#pragma once

#include <cstddef>
#include <functional>

#include "costmodel/base/units.hpp"

namespace runtime {

class Streams {
 public:
  using Stream = int;
  using Event = int;
  // The stream on which Memory and Device enqueue their work.
  static constexpr Stream compute = 0;

  virtual ~Streams() = default;
  virtual Stream make_stream() = 0;
  // A new event, already complete; lives as long as this.
  virtual Event make_event() = 0;
  // The event completes when the stream has done all work enqueued so far.
  virtual void record(Stream stream, Event event) = 0;
  // Later work on the stream waits for the event's last record().
  virtual void wait(Stream stream, Event event) = 0;
  virtual void copy(Stream stream, const void* from, void* to, std::size_t bytes) = 0;
  // Whether the event has completed. Throws errors of the device.
  virtual bool passed(Event event) = 0;
  // The time from one event's completion to the other's, in seconds. Waits for both.
  virtual costmodel::Seconds time(Event since, Event event) = 0;
  // Registers a callback that Memory::wait() polls; an exception it throws ends the wait. Empty:
  // none.
  virtual void watch(std::function<void()> look) = 0;
};

}  // namespace runtime
