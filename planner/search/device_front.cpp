#include "planner/search/device_front.hpp"

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>

#include "costmodel/base/parallel_for.hpp"
#include "planner/search/grid_search.hpp"

namespace planner {

using namespace costmodel;

namespace {

bool dominates(const FrontPoint& a, const FrontPoint& b) {
  const auto of = [](const FrontPoint& p) {
    return std::array{p.plan.iteration.value, static_cast<double>(p.devices), p.device_seconds,
                      p.plan.peak.value};
  };
  const auto x = of(a), y = of(b);
  bool better = false;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x.at(i) > y.at(i)) return false;
    better = better || x.at(i) < y.at(i);
  }
  return better;
}

FrontPoint point_of(std::int64_t devices, const Estimate& plan) {
  return {devices, plan, static_cast<double>(devices) * plan.iteration.value, false};
}

std::optional<Estimate> best_on(const Scenario& scenario, std::int64_t devices,
                                const SearchMethod& method, const std::function<bool()>& stopped) {
  Scenario s = scenario;
  s.cluster = resized(scenario.cluster, devices);
  return chosen_plan(s, {.reach = method.reach}, stopped);
}

}  // namespace

std::vector<std::int64_t> device_counts(const ClusterSpec& cluster) {
  const std::int64_t node = std::min(cluster.devices_per_node, cluster.devices);
  std::vector<std::int64_t> all;
  for (std::int64_t n = 1; n < node; n *= 2) all.push_back(n);
  for (std::int64_t n = node; n < cluster.devices; n *= 2) {
    all.push_back(n);
    const std::int64_t between = n / node * 3 / 2 * node;
    if (between > n && between < cluster.devices) all.push_back(between);
  }
  all.push_back(cluster.devices);
  return all;
}

DeviceFront device_front(const Scenario& scenario, const std::vector<Estimate>& own,
                         const SearchMethod& method, const std::function<bool()>& stopped) {
  std::vector<std::int64_t> counts = device_counts(scenario.cluster);
  counts.pop_back();  // all devices: `own`
  std::vector<std::optional<Estimate>> best(counts.size());
  std::atomic<bool> ended = false;
  share_out(counts.size(), method.threads, [&](std::size_t i) {
    if (ended || (stopped && stopped())) {
      ended = true;
      return;
    }
    best[i] = best_on(scenario, counts[i], method, stopped);
  });
  DeviceFront front{.interrupted = ended || (stopped && stopped())};
  for (std::size_t i = 0; i < counts.size(); ++i)
    if (best[i]) front.points.push_back(point_of(counts[i], *best[i]));
  for (const Estimate& plan : own) front.points.push_back(point_of(scenario.cluster.devices, plan));
  for (FrontPoint& point : front.points) {
    point.on_front = std::ranges::none_of(
        front.points, [&](const FrontPoint& other) { return dominates(other, point); });
  }
  return front;
}

std::vector<Estimate> memory_front(const Scenario& scenario, const Estimate& fastest,
                                   const SearchMethod& method,
                                   const std::function<bool()>& expired) {
  std::vector<Estimate> front{fastest};
  Scenario less = scenario;
  for (const double share : front_shares) {
    const auto limit = min(fastest.peak * share, front.back().peak * (1 - least_saving));
    less.search.memory_margin = 1 - limit / scenario.cluster.device.memory;
    auto found = chosen_plan(less, method, expired);
    if (!found) break;
    // A simpler plan is preferred for a little time, so that less memory may take less of both.
    while (front.size() > 1 && found->iteration <= front.back().iteration) front.pop_back();
    front.push_back(std::move(*found));
  }
  return front;
}

}  // namespace planner
