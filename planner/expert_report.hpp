// What `validate --against-planner` prints.
#pragma once

#include <string>
#include <vector>

#include "planner/expert_plans.hpp"
#include "planner/report_text.hpp"
#include "planner/table.hpp"

namespace planner {

// By source, what is slower by name, what is not compared; with `every_run` each workload's plans
// beside the planner's.
std::string expert_report(const ExpertComparison& comparison, bool every_run,
                          const ReportStyle& style);

// One row a run, for programs.
Table expert_rows(const ExpertComparison& comparison);

std::string expert_json(const ExpertComparison& comparison);

}  // namespace planner
