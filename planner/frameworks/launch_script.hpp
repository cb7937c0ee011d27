// A launch script for a plan in Megatron-LM.
#pragma once

#include <string>

#include "costmodel/plan/parallel_plan.hpp"
#include "costmodel/scenario/scenario.hpp"
#include "planner/frameworks/export_megatron.hpp"

namespace planner {

// A bash script: environment, arguments one per line, torchrun. It trains on mock data, so that it
// runs without a data set.
std::string launch_script(const MegatronExport& exported, const costmodel::Scenario& scenario,
                          const costmodel::ParallelPlan& plan);

}  // namespace planner
