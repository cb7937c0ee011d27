#include "planner/search/mesh_bound.hpp"

#include <algorithm>

#include "costmodel/plan/stage_plan.hpp"
#include "planner/solvers/tolerances.hpp"

namespace planner {

using namespace costmodel;

namespace {

// By class: the least (weighted) device-seconds of a stage.
std::vector<double> least_device_seconds(const SlicingProblem& group, double weight) {
  std::vector<double> least;
  for (const auto& list : group.options) {
    least.push_back(infinity);
    for (const StageOption& o : list) {
      if (o.most_in_flight > 0)
        least.back() = std::min(least.back(), weight * o.devices * o.seconds);
    }
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

}  // namespace

Seconds mesh_bound(const Scenario& s, const std::vector<SlicingProblem>& groups) {
  const SlicingProblem& any = groups.front();
  const auto precision = s.training.precision;
  std::vector<std::vector<double>> least;
  double all = 0;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const ClusterSpec& devices = group_of(s.cluster, static_cast<int>(g));
    const double peak = devices.device.peak_of(precision).value;
    least.push_back(least_device_seconds(groups[g], peak));
    all += peak * static_cast<double>(devices.devices);
  }
  std::vector<double> path(at(any.layers + 1), infinity);
  path.front() = 0;
  for (int first = 0; first < any.layers; ++first)
    for (std::size_t g = 0; g < groups.size(); ++g) add_group(groups[g], least[g], first, path);
  return Seconds(static_cast<double>(any.micro_batches) * path.back() / all);
}

}  // namespace planner
