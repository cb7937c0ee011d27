// The Pareto front of time, devices, cost and memory: the best even plan on ever more devices, and
// on the scenario's own those that need less memory, which are a front of their own.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "costmodel/estimate/estimate.hpp"
#include "costmodel/scenario/scenario.hpp"
#include "planner/search/strategy.hpp"

namespace planner {

struct FrontPoint {
  std::int64_t devices = 0;
  costmodel::Estimate plan;
  // Of one iteration: the cost of a token is in proportion, for devices of one kind cost by their
  // number.
  double device_seconds = 0;
  // Whether no other point is as good in all of time, devices, device-seconds and memory needed a
  // device, and better in one.
  bool on_front = false;
};

// 1, 2, 3, 4, 6, 8, 12 ... nodes (below one, powers of two), and all devices of the cluster.
std::vector<std::int64_t> device_counts(const costmodel::ClusterSpec& cluster);

struct DeviceFront {
  std::vector<FrontPoint> points = {};  // ascending devices, then ascending time
  bool interrupted = false;             // `stopped` said so; then not all were tried
};

// The best plan on each of device_counts() where one fits, and `own`: the plans of memory_front()
// on all devices. For stages that are alike on devices of one kind. Polls `stopped`.
DeviceFront device_front(const costmodel::Scenario& scenario,
                         const std::vector<costmodel::Estimate>& own,
                         const SearchMethod& method = {},
                         const std::function<bool()>& stopped = {});

// The front of iteration time and memory: the chosen plan, and others that need less memory a
// device, each the one that `plan` chooses of those that need no more. Every row is its search with
// a lower limit, so it is proved like the best plan.

// The parts of the fastest plan's memory within which others are searched, and by how much at least
// each needs less than the one before it.
inline constexpr std::array front_shares{0.95, 0.9, 0.8, 0.65, 0.5};
inline constexpr double least_saving = 0.05;

// `fastest` first, the best plan of the scenario; then one for each share, until nothing fits.
// Devices are those of the scenario: `shardplan sweep` compares clusters. Stops early, with the
// rows that are proved, once `expired` returns true.
std::vector<costmodel::Estimate> memory_front(const costmodel::Scenario& scenario,
                                              const costmodel::Estimate& fastest,
                                              const SearchMethod& method = {},
                                              const std::function<bool()>& expired = {});

}  // namespace planner
