// What an upgrade buys, as plan --upgrades tells it.
#pragma once

#include <string>
#include <vector>

#include "planner/diagnosis/upgrades.hpp"
#include "planner/report/plan_report.hpp"
#include "planner/report/table.hpp"

namespace planner {

Table upgrade_table(const UpgradeGains& found, const costmodel::Scenario& scenario);

// What the table's columns mean, and what is not known.
std::vector<std::string> upgrade_sentences(const UpgradeGains& found,
                                           const costmodel::Scenario& scenario);

std::string upgrade_report(const UpgradeGains& found, const costmodel::Scenario& scenario,
                           const ReportStyle& style);

}  // namespace planner
