// Exports a plan to Megatron-LM: the arguments of pretrain_gpt.py (core 0.20) and the environment
// variables.
#pragma once

#include <string>
#include <vector>

#include "costmodel/plan/parallel_plan.hpp"
#include "costmodel/scenario/scenario.hpp"

namespace planner {

struct MegatronExport {
  std::vector<std::string> arguments;    // "--flag" or "--flag value"
  std::vector<std::string> environment;  // "NAME=value"
  std::vector<std::string> notes;  // where Megatron-LM differs from the cost model's assumptions
};

// Throws costmodel::ConfigError when Megatron-LM would reject the plan.
MegatronExport export_megatron(const costmodel::Scenario& scenario,
                               const costmodel::ParallelPlan& plan);

}  // namespace planner
