// Normalises times to one pace of the machine: the pace at which the yardstick
// (runtime/devices/yardstick.hpp) takes the reference time.
//
// The pace jumps by half within milliseconds (a neighbour on the same core comes and goes), often
// within a timed run, so a single time cannot be corrected by the yardsticks next to it. Sums can:
// yardsticks are placed between runs independently of the pace, so over many repeats their sum is
// slowed down as much as that of the runs.
#pragma once

#include <functional>
#include <utility>

#include "costmodel/base/units.hpp"

namespace calibrate {

// Returns the slowdown right now: the yardstick's time over the reference.
using Pace = std::function<double()>;

// The reference of this process in seconds: the one set, or else the best seen at the first call.
costmodel::Seconds pace_reference();
// Sets the reference of this process, for instance a profile's, for all later times.
void set_pace_reference(costmodel::Seconds reference);

// Measures with a yardstick of the calling thread; takes about 25 us.
Pace yardstick();

// Repeats a measurement, at most three times in all, whose slowdown no neighbour can explain,
// because the core was taken away meanwhile.
double undisturbed(const Pace& pace);

// The slowdown of a sample: the mean of the paces before and after it.
class PaceAround {
 public:
  explicit PaceAround(Pace pace) : pace_(std::move(pace)) {}
  void begin() { last_ = now(); }
  // Of the work since begin() or the last call.
  double slowdown() {
    const double before = last_;
    begin();
    return (before + last_) / 2;
  }

 private:
  double now() const { return pace_ ? pace_() : 1; }
  Pace pace_;
  double last_ = 1;
};

}  // namespace calibrate
