#include "planner/diagnosis/expert_remedy.hpp"

#include <algorithm>

#include "planner/search/search_space.hpp"

namespace planner {

using namespace costmodel;

std::vector<int> untried_expert_sizes(const Scenario& s) {
  if (s.model.experts == 0) return {};
  const int tried = s.plan.etp.value_or(1);
  std::vector<int> ranks;
  for (const std::int64_t etp : divisors(std::min(s.cluster.devices_per_node, s.cluster.devices))) {
    if (etp == tried || (!s.plan.etp && s.plan.tp == etp)) continue;
    ranks.push_back(static_cast<int>(etp));
  }
  std::ranges::sort(ranks);
  return ranks;
}

}  // namespace planner
