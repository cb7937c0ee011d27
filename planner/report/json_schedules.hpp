// Schedules side by side, as JSON.
#pragma once

#include <string>
#include <vector>

#include "planner/report/schedule_comparison.hpp"

namespace planner {

// {"schedules": [...]}: figures in seconds and bytes, or why there is no such plan.
std::string schedules_json(const std::vector<ComparedSchedule>& schedules);

}  // namespace planner
