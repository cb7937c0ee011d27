// How far a run is: the measurements of all ranks, iteration by iteration, on rank 0. So a run that
// ends before its time can still say what it saw.
#pragma once

#include <mutex>
#include <vector>

#include "runtime/training/measurement.hpp"

namespace runtime {

// Any thread may use it.
class RunProgress {
 public:
  // One more iteration that all ranks have ended, by rank. Times of stages are kept as means over
  // all iterations but the first, the rest as the last iteration had it.
  void add(std::vector<RankMeasurement> iteration);
  // By rank; empty before the first iteration has ended.
  std::vector<RankMeasurement> so_far() const;

 private:
  mutable std::mutex mutex_;
  std::vector<RankMeasurement> ranks_;
};

}  // namespace runtime
