// Other machines than the scenario's, as flags of plan tell them: the front over devices, cost and
// memory (--front), how many devices a run needs (--deadline, --budget), what an upgrade buys
// (--upgrades).
#pragma once

#include <string>
#include <vector>

#include "costmodel/scenario/scenario.hpp"
#include "planner/diagnosis/upgrades.hpp"
#include "planner/report/plan_report.hpp"
#include "planner/report/table.hpp"
#include "planner/search/device_front.hpp"
#include "planner/search/device_ladder.hpp"

namespace planner {

// What a billion tokens take at a point, failures left out.
double device_hours_per_billion_tokens(const FrontPoint& point);

// The points of the front.
Table device_front_table(const DeviceFront& front, const costmodel::Scenario& scenario);

// How many points are left out, and what is not known.
std::vector<std::string> device_front_sentences(const DeviceFront& front,
                                                const costmodel::Scenario& scenario);

std::string device_front_report(const DeviceFront& front, const costmodel::Scenario& scenario,
                                const ReportStyle& style);

// The answer in a sentence: how many devices, and what they take.
std::string ladder_verdict(const DeviceLadder& ladder, const RunLimits& limits,
                           const costmodel::Scenario& scenario);

// The numbers of devices tried: days, device hours, cost.
Table ladder_table(const DeviceLadder& ladder);

// The verdict and the table, above the report of the plan chosen, or alone.
std::string ladder_report(const DeviceLadder& ladder, const RunLimits& limits,
                          const costmodel::Scenario& scenario, const ReportStyle& style);

Table upgrade_table(const UpgradeGains& found, const costmodel::Scenario& scenario);

// What the table's columns mean, and what is not known.
std::vector<std::string> upgrade_sentences(const UpgradeGains& found,
                                           const costmodel::Scenario& scenario);

std::string upgrade_report(const UpgradeGains& found, const costmodel::Scenario& scenario,
                           const ReportStyle& style);

}  // namespace planner
