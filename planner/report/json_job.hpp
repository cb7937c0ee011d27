// JSON of what `explain-job` says of a job.
#pragma once

#include <string>

#include "costmodel/scenario/scenario.hpp"
#include "planner/report/job_report.hpp"

namespace planner {

// {"scenario", "cause", "causes": [...], "ruled_out", "contradictions", "measured": {...},
// "predicted": {the JSON of `evaluate`}, "parts": [...], "changes": [...], "best": {...}}; what
// comes from the log is null without one.
std::string job_json(const JobReport& job, const costmodel::Scenario& scenario);

}  // namespace planner
