// A plan as the planner's JSON tells it.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "costmodel/estimate/evaluator.hpp"

namespace planner {

// costmodel::plan_json, with the keys that a stage may have of its own (tp, recompute, zero) saying
// of a plan with `stages` what all of these have in common, or null.
nlohmann::ordered_json told_plan(const costmodel::Estimate& estimate);

}  // namespace planner
