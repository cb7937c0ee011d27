// The Pareto front of time, devices, cost and memory: the best even plan on ever more devices, and
// on the scenario's own those that need less memory.
#pragma once

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

}  // namespace planner
