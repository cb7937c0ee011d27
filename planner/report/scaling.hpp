// How a run scales: speed-up and parallel efficiency over numbers of devices, and the knee.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace planner {

struct ScalingPoint {
  std::int64_t devices = 0;
  double tokens_per_s = 0;  // 0: no plan that fits
  // Against the fewest devices with a plan: tokens per second over theirs, and that over the
  // devices over theirs. Both the same for strong scaling (one batch) and weak scaling (a batch
  // that grows with the devices). Nothing without a plan.
  std::optional<double> speedup = {}, efficiency = {};
  bool knee = false;
};

// Fills in the rest of points that have devices and tokens per second. The knee is the point with
// the greatest efficiency times speed-up: D. L. Eager, J. Zahorjan, E. D. Lazowska, Speedup versus
// efficiency in parallel systems, IEEE Transactions on Computers 38 (1989) 408-423, place it where
// the ratio of efficiency to execution time is greatest, the most benefit per unit of cost. Of
// equal points the first. None where that is the most devices, for beyond them it may be greater
// yet, nor of fewer than three points.
void fill_scaling(std::vector<ScalingPoint>& points);

}  // namespace planner
