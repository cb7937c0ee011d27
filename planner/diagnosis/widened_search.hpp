// The limits of a search (`search:` of a scenario) that leave a plan out.
#pragma once

#include <string>
#include <vector>

#include "costmodel/plan/parallel_plan.hpp"
#include "costmodel/scenario/scenario.hpp"

namespace planner {

// Without limits of sizes, ZeRO stages, recomputation and schedules; margins and rows stay.
costmodel::SearchLimits without_limits(costmodel::SearchLimits limits);

// What must be set for a search within `limits` to take `plan`, as --set takes it:
// "search.max_tp=8".
std::vector<std::string> widened_search(const costmodel::SearchLimits& limits,
                                        const costmodel::ParallelPlan& plan);

}  // namespace planner
