// What the answer hangs on, as plan and evaluate --sensitivity tell it.
#pragma once

#include <string>

#include "planner/diagnosis/sensitivity.hpp"
#include "planner/report/plan_report.hpp"
#include "planner/report/table.hpp"

namespace planner {

// An input's number with its unit: "25 GB/s", "45 us", "0.78".
std::string input_text(double value, costmodel::Dimension unit);

// The inputs by their effect.
Table sensitivity_table(const Sensitivity& found);

// What the table does not say: the largest effect, where the best plan changes, what changes
// nothing.
std::vector<std::string> sensitivity_sentences(const Sensitivity& found);

std::string sensitivity_report(const Sensitivity& found, const ReportStyle& style);

}  // namespace planner
