// A device that also says how fast its core was while it computed: it takes the yardstick between
// operators, after so many calls that it does so about every three milliseconds. After a number
// of calls and not a time, for then yardsticks stand at places that do not depend on the pace, and
// their mean is as slow as the work is.
#pragma once

#include <cstdint>

#include "runtime/devices/device_wrapper.hpp"
#include "runtime/devices/yardstick.hpp"

namespace runtime {

class PacedDevice : public DeviceAround {
 public:
  // `device` outlives this.
  explicit PacedDevice(Device& device) : DeviceAround(device) {}

  // Of the operators since the last call: their time by the wall's clock over what they would have
  // taken at the pace where the yardstick takes `reference`; 1 when there were none.
  double slowdown(costmodel::Seconds reference);
  // That the yardstick took by the wall's clock, so far.
  costmodel::Seconds measuring() const { return measuring_; }
  std::int64_t yardsticks() const { return all_; }  // so far

 private:
  void around(Work work, const OpCall& call) override;
  void take();

  Yardstick yardstick_;
  std::int64_t calls_ = 0, every_ = 0;  // since the last answer; 0: not settled yet
  costmodel::Seconds wall_, own_;       // of operators, by either clock
  costmodel::Seconds sticks_;           // of so many yardsticks
  int taken_ = 0;
  std::int64_t all_ = 0;
  costmodel::Seconds measuring_;
};

}  // namespace runtime
