#include "planner/diagnosis/widened_search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "costmodel/plan/recompute.hpp"
#include "costmodel/schedule/schedule_kind.hpp"

namespace planner {

using namespace costmodel;

SearchLimits without_limits(SearchLimits limits) {
  limits.max_tp = limits.max_pp = limits.max_cp = limits.max_ep = limits.max_vpp = 0;
  limits.max_micro_batch = 0;
  limits.zero.clear();
  limits.recompute.clear();
  limits.schedules.clear();
  return limits;
}

std::vector<std::string> widened_search(const SearchLimits& limits, const ParallelPlan& plan) {
  std::vector<std::string> settings;
  const auto at_most = [&](const char* key, std::int64_t most, std::int64_t size) {
    if (most > 0 && size > most) settings.push_back(fmt::format("search.{}={}", key, size));
  };
  at_most("max_tp", limits.max_tp, plan.tp);
  at_most("max_pp", limits.max_pp, plan.pp);
  at_most("max_cp", limits.max_cp, plan.cp);
  at_most("max_ep", limits.max_ep, plan.ep);
  at_most("max_vpp", limits.max_vpp, plan.vpp);
  at_most("max_micro_batch", limits.max_micro_batch, plan.micro_batch);
  const auto among = [&](const char* key, const auto& list, auto value, const auto& name) {
    if (!list.empty() && std::ranges::find(list, value) == list.end())
      settings.push_back(fmt::format("search.{}={}", key, name));
  };
  among("zero", limits.zero, plan.zero, plan.zero);
  among("recompute", limits.recompute, plan.recompute.granularity,
        recomputation_names[static_cast<std::size_t>(plan.recompute.granularity)]);
  if (plan.pp > 1)
    among("schedules", limits.schedules, plan.schedule, schedule_name(plan.schedule));
  return settings;
}

}  // namespace planner
