#include "planner/search/memory_front.hpp"

#include <utility>

#include "costmodel/estimate/evaluator.hpp"
#include "planner/search/grid_search.hpp"

namespace planner {

using costmodel::Estimate;

std::vector<Estimate> memory_front(const costmodel::Scenario& scenario, const Estimate& fastest,
                                   const std::function<bool()>& expired) {
  std::vector<Estimate> front{fastest};
  costmodel::Evaluator evaluator(scenario.model, scenario.cluster, scenario.training);
  costmodel::Scenario less = scenario;
  less.search.top = 1;
  for (const double share : front_shares) {
    const auto limit = min(fastest.peak * share, front.back().peak * (1 - least_saving));
    less.search.memory_margin = 1 - limit / scenario.cluster.device.memory;
    SearchResult found = search(less, evaluator, expired);
    if (found.expired || found.plans.empty()) break;
    front.push_back(std::move(found.plans.front()));
  }
  return front;
}

}  // namespace planner
