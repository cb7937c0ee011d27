// A decorator that measures the core's speed while it computes: it times the yardstick
// (yardstick.hpp) between operators, after a fixed number of calls, about every 3 ms. It counts
// calls instead of time, so that the samples do not depend on the pace and their mean slowdown is
// that of the operators.
#pragma once

#include <cstdint>

#include "runtime/devices/device_wrapper.hpp"
#include "runtime/devices/yardstick.hpp"

namespace runtime {

class PacedDevice : public DeviceAround {
 public:
  // `device` outlives this.
  explicit PacedDevice(Device& device) : DeviceAround(device) {}

  // The slowdown of the operators since the last call: their wall time over the time they would
  // take at the pace at which the yardstick takes `reference`; 1 when there were none.
  double slowdown(costmodel::Seconds reference);
  // The wall time spent on yardsticks so far.
  costmodel::Seconds measuring() const { return measuring_; }
  std::int64_t yardsticks() const { return all_; }  // so far

 private:
  void around(Work work, const OpCall& call) override;
  void take();

  Yardstick yardstick_;
  std::int64_t calls_ = 0, every_ = 0;  // since slowdown(); every_ 0: not decided yet
  costmodel::Seconds wall_, own_;       // of operators, on the wall clock and on the thread's clock
  costmodel::Seconds sticks_;           // of `taken_` yardsticks
  int taken_ = 0;
  std::int64_t all_ = 0;
  costmodel::Seconds measuring_;
};

}  // namespace runtime
