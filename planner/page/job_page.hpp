// The page of `explain-job`: what is wrong and what to do first, then measured against predicted as
// a waterfall, the series of iterations, the causes with what each explains, and all figures.
#pragma once

#include <string>

#include "planner/report/job_report.hpp"

namespace planner {

// `json`: the same job as job_json() has it.
std::string job_page(const JobReport& job, const costmodel::Scenario& scenario,
                     const std::string& json);

}  // namespace planner
