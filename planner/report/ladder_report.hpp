// How many devices a training run needs, as plan --deadline and --budget tell it.
#pragma once

#include <string>

#include "costmodel/scenario/scenario.hpp"
#include "planner/report/plan_report.hpp"
#include "planner/report/table.hpp"
#include "planner/search/device_ladder.hpp"

namespace planner {

// The answer in a sentence: how many devices, and what they take.
std::string ladder_verdict(const DeviceLadder& ladder, const RunLimits& limits,
                           const costmodel::Scenario& scenario);

// The numbers of devices tried: days, device hours, cost.
Table ladder_table(const DeviceLadder& ladder);

// The verdict and the table, above the report of the plan chosen, or alone.
std::string ladder_report(const DeviceLadder& ladder, const RunLimits& limits,
                          const costmodel::Scenario& scenario, const ReportStyle& style);

}  // namespace planner
