// A plan in Megatron-LM's own words: the arguments of pretrain_gpt.py (core 0.20) and what
// the environment must hold.
#pragma once

#include <string>
#include <vector>

#include "costmodel/plan/parallel_plan.hpp"
#include "costmodel/scenario/scenario.hpp"

namespace planner {

struct MegatronExport {
  std::vector<std::string> arguments;    // "--flag" or "--flag value"
  std::vector<std::string> environment;  // "NAME=value"
  std::vector<std::string> notes;        // what Megatron-LM does otherwise than the model assumes
};

// Throws costmodel::ConfigError when Megatron-LM would refuse the plan.
MegatronExport export_megatron(const costmodel::Scenario& scenario,
                               const costmodel::ParallelPlan& plan);

}  // namespace planner
