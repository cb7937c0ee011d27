// `explain`: the prediction as worked formulas, each with symbol, value and origin.
#pragma once

#include <string>

#include "costmodel/estimate/estimate.hpp"
#include "costmodel/scenario/scenario.hpp"
#include "planner/report/plan_report.hpp"
#include "planner/report/table.hpp"

namespace planner {

std::string explanation(const costmodel::ParallelPlan& plan, const costmodel::Scenario& scenario,
                        costmodel::Evaluator& evaluator, const ReportStyle& style);

// The same as rows for JSON: group, symbol, value, unit, formula.
Table explanation_table(const costmodel::ParallelPlan& plan, const costmodel::Scenario& scenario,
                        costmodel::Evaluator& evaluator);

}  // namespace planner
