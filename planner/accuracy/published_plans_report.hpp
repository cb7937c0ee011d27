// The output of `validate --against-planner`.
#pragma once

#include <string>

#include "planner/accuracy/published_plans.hpp"
#include "planner/report/plan_report.hpp"
#include "planner/report/table.hpp"

namespace planner {

// Figures by source, the slower cases by name, the runs that are not compared; with `every_run`
// also every workload's plans next to the planner's.
std::string expert_report(const ExpertComparison& comparison, bool every_run,
                          const ReportStyle& style);

// One row per run, for programs.
Table expert_rows(const ExpertComparison& comparison);

}  // namespace planner
