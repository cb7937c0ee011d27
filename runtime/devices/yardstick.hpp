// How fast the calling thread's core computes just now. Neighbours on the same core, other tenants
// and clocks change that by half within milliseconds and from hour to hour, so a time means little
// without what a piece of work that is always the same took beside it.
#pragma once

#include <cstdint>
#include <vector>

#include "costmodel/base/units.hpp"

namespace runtime {

// Seconds, on two clocks: the wall's, and the calling thread's own, which stands still while the
// thread does not run.
costmodel::Seconds wall_time();
costmodel::Seconds thread_time();

// The time of one product of 64 x 64 x 64 in fp32 by runtime/cpu's own GEMM, about 5 us: its
// operands are too small to drive anything out of the caches. For one thread.
class Yardstick {
 public:
  // By the thread's own clock: the middle one of three, so that neither an interruption nor a clock
  // that jumps counts. Takes four times as long.
  costmodel::Seconds now();
  // The fastest fiftieth of ten thousand.
  costmodel::Seconds at_best();

 private:
  double once();
  static constexpr std::int64_t side = 64;
  std::vector<float> a_ = std::vector<float>(side * side, 1), b_ = a_, c_ = a_;
};

}  // namespace runtime
