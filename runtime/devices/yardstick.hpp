// Measures how fast the calling thread's core computes right now. Neighbours on the same core,
// other tenants and clock frequencies change that by half within milliseconds and from hour to
// hour, so timings are paired with the time of a fixed piece of work taken next to them.
#pragma once

#include <cstdint>
#include <vector>

#include "costmodel/base/units.hpp"

namespace runtime {

// Seconds, on the wall clock and on the calling thread's CPU clock, which stops while the thread
// does not run.
costmodel::Seconds wall_time();
costmodel::Seconds thread_time();

// The time of one 64 x 64 x 64 product in fp32 by the GEMM of runtime/cpu, about 5 us: its operands
// are too small to evict anything from the caches. Not thread-safe.
class Yardstick {
 public:
  // On the thread's clock: the median of three, so that one interruption or clock jump does not
  // count. Takes as long as four products.
  costmodel::Seconds now();
  // The time of the machine at its best: the fastest 2 % of ten thousand products.
  costmodel::Seconds at_best();

 private:
  double once();
  static constexpr std::int64_t side = 64;
  std::vector<float> a_ = std::vector<float>(side * side, 1), b_ = a_, c_ = a_;
};

}  // namespace runtime
