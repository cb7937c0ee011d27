// Exports a plan to DeepSpeed: a ds_config.json and the launch of a training script with it. Keys
// as in "DeepSpeed Configuration JSON" (docs/_pages/config-json.md of deepspeedai/DeepSpeed, commit
// da9b77384a); what its engines refuse as in runtime/engine.py and runtime/pipe/engine.py.
#pragma once

#include <vector>

#include "costmodel/plan/parallel_plan.hpp"
#include "costmodel/scenario/scenario.hpp"
#include "planner/exchange/exported.hpp"

namespace planner {

// Empty when DeepSpeed can run the plan. Never throws.
std::vector<costmodel::Violation> deepspeed_violations(const costmodel::Scenario& scenario,
                                                       const costmodel::ParallelPlan& plan);

// text: a bash script that writes ds_config.json and launches; json: ds_config.json. Throws
// costmodel::ConfigError when DeepSpeed cannot run the plan.
Exported export_deepspeed(const costmodel::Scenario& scenario, const costmodel::ParallelPlan& plan);

}  // namespace planner
