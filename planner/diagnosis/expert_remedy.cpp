#include "planner/diagnosis/expert_remedy.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "costmodel/base/unit_text.hpp"
#include "costmodel/estimate/evaluator.hpp"
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

std::vector<std::string> fitting_expert_sizes(ParallelPlan plan, Evaluator& evaluator) {
  const Workload& on = evaluator.workload();
  if (on.model.experts == 0 || !plan.even()) return {};
  const int own = plan.etp;
  std::vector<std::int64_t> ranks = divisors(std::int64_t{plan.tp} * plan.cp * plan.dp / plan.ep);
  std::ranges::sort(ranks);
  std::vector<std::string> fitting;
  for (const std::int64_t etp : ranks) {
    if (etp == own || etp > on.cluster.devices_per_node) continue;
    plan.etp = static_cast<int>(etp);
    if (!violations(plan, on.model, on.cluster, on.training).empty()) continue;
    const Bytes peak = evaluator.cost(plan).peak;
    if (peak <= on.cluster.device.memory)
      fitting.push_back(fmt::format("etp {}: fits in {}", etp, format_bytes(peak)));
  }
  return fitting;
}

}  // namespace planner
