// A script that starts a plan in Megatron-LM.
#pragma once

#include <string>

#include "costmodel/plan/parallel_plan.hpp"
#include "costmodel/scenario/scenario.hpp"
#include "planner/exchange/export_megatron.hpp"

namespace planner {

// A bash script: environment, arguments one a line, torchrun. It trains on made-up data, so that
// it runs as it is.
std::string launch_script(const MegatronExport& exported, const costmodel::Scenario& scenario,
                          const costmodel::ParallelPlan& plan);

}  // namespace planner
