// The JSON of `validate` of evidence of serving.
#pragma once

#include <string>
#include <vector>

#include "planner/accuracy/serving_evidence.hpp"

namespace planner {

// One object a run, with what is predicted and measured.
std::string serving_runs_json(const std::vector<ServingRun>& runs);

}  // namespace planner
