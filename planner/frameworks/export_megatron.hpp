// Exports a plan to Megatron-LM: the arguments of pretrain_gpt.py (core 0.20) and the environment
// variables.
#pragma once

#include <string>
#include <vector>

#include "costmodel/plan/parallel_plan.hpp"
#include "costmodel/scenario/scenario.hpp"

namespace planner {

struct MegatronExport {
  std::vector<std::string> arguments;    // "--flag" and its values, each a word: "--flag a b"
  std::vector<std::string> environment;  // "NAME=value"
  std::vector<std::string> notes;  // where Megatron-LM differs from the cost model's assumptions
};

// Which fused losses a program starts with: Megatron-LM's arguments refuse Transformer Engine's
// since core 0.18.2 (megatron/training/arguments.py, validate_args); programs that set its
// configurations do not.
enum class FusedLoss { native, any };

// Throws costmodel::ConfigError when Megatron-LM would reject the plan.
MegatronExport export_megatron(const costmodel::Scenario& scenario,
                               const costmodel::ParallelPlan& plan,
                               FusedLoss taken = FusedLoss::native);

}  // namespace planner
