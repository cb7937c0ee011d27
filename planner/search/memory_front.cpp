#include "planner/search/memory_front.hpp"

#include <utility>

#include "planner/search/grid_search.hpp"

namespace planner {

using namespace costmodel;

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
    front.push_back(std::move(*found));
  }
  return front;
}

}  // namespace planner
