// The progress of a run on rank 0: all ranks' measurements, iteration by iteration, so that a run
// that ends early can still report them.
#pragma once

#include <mutex>
#include <vector>

#include "runtime/training/measurement.hpp"

namespace runtime {

// Thread-safe.
class RunProgress {
 public:
  // Adds an iteration that all ranks have completed; measurements by rank. Stage times become means
  // over all iterations but the first; everything else is the last iteration's.
  void add(std::vector<RankMeasurement> iteration);
  // By rank; empty before the first completed iteration.
  std::vector<RankMeasurement> so_far() const;

 private:
  mutable std::mutex mutex_;
  std::vector<RankMeasurement> ranks_;
};

}  // namespace runtime
