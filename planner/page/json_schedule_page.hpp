// All schedules of one scenario as a page of HTML: a table of bubble, memory and time, and the
// pipelines drawn one under another on one scale of time.
#pragma once

#include <string>
#include <vector>

#include "costmodel/scenario/scenario.hpp"
#include "planner/report/schedule_comparison.hpp"

namespace planner {

// `json` is what `simulate --compare --format json` prints of those schedules.
std::string schedule_page(const std::string& json, const std::vector<ComparedSchedule>& schedules,
                          const costmodel::Scenario& scenario, const costmodel::ParallelPlan& plan);

}  // namespace planner
