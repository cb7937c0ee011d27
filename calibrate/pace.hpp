// How fast the machine computes just now. Neighbours on the same core, other tenants and clocks
// change it by half within milliseconds; a time counts only for the pace it was taken at.
#pragma once

#include <functional>
#include <utility>

namespace calibrate {

// The best pace over the present one, 1 at most: a time multiplied by it is the time at the best
// pace.
using Pace = std::function<double()>;

// By a small product through the runtime's own GEMM, against its best time on this thread; takes
// about 100 us, the thread's first a quarter of a second.
Pace yardstick();

// The mean of two paces around a sample.
class PaceAround {
 public:
  explicit PaceAround(Pace pace) : pace_(std::move(pace)) {}
  void begin() { last_ = now(); }
  // Of what ran since begin() or the last call.
  double factor() {
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
