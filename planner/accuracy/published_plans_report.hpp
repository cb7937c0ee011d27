// What `validate --against-planner` prints.
#pragma once

#include <string>
#include <vector>

#include "planner/accuracy/published_plans.hpp"
#include "planner/report/plan_report.hpp"
#include "planner/report/table.hpp"

namespace planner {

// By source, what is slower by name, what is not compared; with `every_run` each workload's plans
// beside the planner's.
std::string expert_report(const ExpertComparison& comparison, bool every_run,
                          const ReportStyle& style);

// One row a run, for programs.
Table expert_rows(const ExpertComparison& comparison);

}  // namespace planner
