#include "planner/report/scaling.hpp"

#include <algorithm>

namespace planner {

void fill_scaling(std::vector<ScalingPoint>& points) {
  const ScalingPoint* first = nullptr;
  for (const ScalingPoint& point : points) {
    if (point.tokens_per_s > 0 && (first == nullptr || point.devices < first->devices))
      first = &point;
  }
  if (first == nullptr) return;
  const double tokens = first->tokens_per_s, devices = static_cast<double>(first->devices);
  ScalingPoint* best = nullptr;
  std::int64_t most_devices = 0;
  int known = 0;
  for (ScalingPoint& point : points) {
    if (!(point.tokens_per_s > 0)) continue;
    ++known;
    most_devices = std::max(most_devices, point.devices);
    point.speedup = point.tokens_per_s / tokens;
    point.efficiency = *point.speedup / (static_cast<double>(point.devices) / devices);
    const auto benefit = [](const ScalingPoint& p) { return *p.speedup * *p.efficiency; };
    if (best == nullptr || benefit(point) > benefit(*best)) best = &point;
  }
  constexpr int least_points = 3;
  if (known >= least_points && best->devices < most_devices) best->knee = true;
}

}  // namespace planner
