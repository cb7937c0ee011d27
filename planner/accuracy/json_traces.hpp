// Traces with what is predicted for their runs, as JSON.
#pragma once

#include <string>
#include <vector>

#include "planner/accuracy/trace_fit.hpp"

namespace planner {

// {"traces": [{"file", "profiler", "device", "iterations", "attributed", "kernels_s", "busy_s",
// "wall_s", "communication_s", "exposed_communication_s", "longest_gap_s", "unprofiled_s",
// "host_bound", "predicted_s", "predicted_with_trace_s", "kinds": [{"kind", "measured_s",
// "steady_s", "predicted_s", "with_trace_s"}], "operators": [{"operator", "backward", "kernels",
// "measured_s"}], "not_attributed": [{"kernel", "launcher", "measured_s"}]}], "stack", "launch_s"
// (0: the stack's), "low", "high"}
// Further keys of explanation_json() and actions_json(): trace_explanation.hpp.
std::string traces_json(const std::vector<FittedTrace>& traces, const costmodel::OwnRuns& own);

}  // namespace planner
