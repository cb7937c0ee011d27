#include "planner/search/mesh_bound.hpp"

#include <algorithm>

#include "costmodel/plan/stage_plan.hpp"
#include "costmodel/schedule/closed_form.hpp"
#include "planner/solvers/tolerances.hpp"

namespace planner {

using costmodel::ClusterSpec;
using costmodel::Scenario;
using costmodel::Seconds;

namespace {

// By class: the least (weighted) device-seconds of a stage.
std::vector<double> least_device_seconds(const SlicingProblem& group, double weight) {
  std::vector<double> least;
  for (const auto& list : group.options) {
    least.push_back(infinity);
    for (const StageOption& o : list)
      least.back() = std::min(least.back(), weight * o.devices * o.seconds);
  }
  return least;
}

// `path[n]` is the least device-seconds of the first n layers.
void add_group(const SlicingProblem& group, const std::vector<double>& least, int first,
               std::vector<double>& path) {
  for (int end = first + 1; end <= group.layers; ++end) {
    const auto c = group.range_class[group.at(first, end)];
    if (c < 0) continue;
    path[at(end)] = std::min(path[at(end)], path[at(first)] + least[at(c)]);
  }
}

// A lower bound on the ratio of a stage's times in two pipelines of different length (idle boost,
// sharing of a node).
double quickest_share(const ClusterSpec& devices, int most_stages, std::int64_t micro_batches) {
  const double bubble = bubble_fraction(costmodel::usual_schedule(1), most_stages, 1,
                                        static_cast<long long>(micro_batches));
  const double busy = 1 / (1 + bubble);
  double share = 1 - devices.device.idle_boost * (1 - busy);
  if (!devices.device.together.empty()) {
    const auto node = static_cast<double>(std::min(devices.devices, devices.devices_per_node));
    share *= std::min(1.0, slowdown_together(devices.device, 1 + (node - 1) * busy) /
                               slowdown_together(devices.device, node));
  }
  return share;
}

}  // namespace

Seconds mesh_bound(const Scenario& s, const std::vector<SlicingProblem>& groups) {
  const SlicingProblem& any = groups.front();
  const auto precision = s.training.precision;
  std::vector<std::vector<double>> least;
  double all = 0, share = 1;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const ClusterSpec& devices = group_of(s.cluster, static_cast<int>(g));
    const double peak = devices.device.peak_of(precision).value;
    least.push_back(least_device_seconds(groups[g], peak));
    all += peak * static_cast<double>(devices.devices);
    const auto stages = std::min<std::int64_t>(any.layers, s.cluster.devices);
    share = std::min(share, quickest_share(devices, static_cast<int>(stages), any.micro_batches));
  }
  std::vector<double> path(at(any.layers + 1), infinity);
  path.front() = 0;
  for (int first = 0; first < any.layers; ++first)
    for (std::size_t g = 0; g < groups.size(); ++g) add_group(groups[g], least[g], first, path);
  return Seconds(static_cast<double>(any.micro_batches) * path.back() / all * share);
}

}  // namespace planner
