// Times work on a device as a layer would find it: the caches cold but for what the operator before
// has just written, the device's clock read by events on its stream. A device without streams is
// timed by the wall clock.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "calibrate/measure/measurement.hpp"
#include "runtime/backend/device.hpp"

namespace calibrate {

class DeviceTimer {
 public:
  using Work = std::function<void()>;

  // Twice the largest L2 of a GPU: 128 MB of GB202 (NVIDIA RTX Blackwell architecture whitepaper);
  // H100 and H200 have 50 MB (NVIDIA H100 architecture whitepaper).
  static constexpr std::size_t usual = std::size_t{256} << 20U;

  // To flush the caches, `flushed` bytes are read. `clock` is a wall clock. `device` outlives this.
  DeviceTimer(runtime::Device& device, Clock clock, std::size_t flushed = usual);
  ~DeviceTimer();
  DeviceTimer(const DeviceTimer&) = delete;
  DeviceTimer& operator=(const DeviceTimer&) = delete;

  // Times `run`: before each the caches are flushed, then `before` writes what is to be in them.
  // Runs are queued several at a time, so that the host is ahead of the device; those before the
  // times have settled are not counted. Two batches are run even if rule.longest is over.
  Timing cold(const Work& before, const Work& run, const StopRule& rule);
  // Times `run` as one of many queued runs, each on the same data: what takes longer, to launch it
  // or to do it.
  Timing queued(const Work& run, const StopRule& rule);
  // The time of one run, nothing flushed.
  costmodel::Seconds once(const Work& run);

  const Clock& clock() const { return clock_; }
  // Wall time that the three have taken, since this was made.
  costmodel::Seconds measuring() const { return measuring_; }
  // Between two events with nothing between them; taken off every time of cold(). Measured by the
  // first call of either. 0 without streams.
  costmodel::Seconds event_pair();

 private:
  class Charged;
  void flush();
  // Adds the times of `runs` runs.
  void batch(const Work& before, const Work& run, int runs, std::vector<double>& times);
  // Seconds from before the work to after it.
  double timed(const Work& work);
  double wall_time_of(const Work& work);

  runtime::Memory& memory_;
  runtime::Streams* const streams_;
  const Clock clock_;
  runtime::Vector read_, kept_;  // fp32: the first is read into the second
  std::vector<runtime::Streams::Event> events_;
  costmodel::Seconds measuring_, pair_;
  bool pair_measured_ = false;
};

}  // namespace calibrate
