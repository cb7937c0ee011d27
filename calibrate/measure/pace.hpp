// Times brought to one pace of the machine, whatever it was when they were taken: the pace at which
// the yardstick (runtime/devices/yardstick.hpp) takes the reference.
//
// The pace jumps by half within milliseconds (a neighbour on the same core comes and goes), often
// within what is timed, so no single time can be put right by the yardsticks beside it. Sums can:
// yardsticks between pieces of work stand at places that do not depend on the pace, so over many
// repeats their sum is slowed down as much as the work's.
#pragma once

#include <functional>
#include <utility>

#include "costmodel/base/units.hpp"

namespace calibrate {

// The yardstick just now over the reference: how many times as slow as at that pace.
using Pace = std::function<double()>;

// Of this process: what was set, or else the best that the first call to need it sees.
costmodel::Seconds pace_reference();
// For the times of this process that come after; a profile's, where they are held against it.
void set_pace_reference(costmodel::Seconds reference);

// By a yardstick of the calling thread's own; takes about 25 us.
Pace yardstick();

// A pace that says how the core computes: one that a neighbour cannot explain, because the core was
// taken away meanwhile, is asked for again, three times at most.
double undisturbed(const Pace& pace);

// The mean of two paces around a sample.
class PaceAround {
 public:
  explicit PaceAround(Pace pace) : pace_(std::move(pace)) {}
  void begin() { last_ = now(); }
  // Of what ran since begin() or the last call.
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
