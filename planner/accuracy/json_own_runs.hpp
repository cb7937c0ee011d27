// JSON of what a user's own runs say of their cluster.
#pragma once

#include <string>

#include "planner/accuracy/own_runs.hpp"

namespace planner {

// {"stack", "runs": [{"log", "iterations", "measured_s", "predicted_s", "by_others_s"}],
// "error_pct", "by_others_error_pct", "refused", "time_factor", "low", "high", "sources"}; what
// needs two runs is null for one.
std::string own_runs_json(const OwnRunsFit& own, int sources);

}  // namespace planner
