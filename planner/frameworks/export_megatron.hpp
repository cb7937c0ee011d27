// Exports a plan to Megatron-LM: the arguments of pretrain_gpt.py (core 0.20) and the environment
// variables.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "costmodel/plan/parallel_plan.hpp"
#include "costmodel/scenario/scenario.hpp"

namespace planner {

struct MegatronExport {
  std::string framework = "Megatron-LM core 0.20";
  std::int64_t null_tokenizer_adds = 0;  // tokens to --vocab-size
  std::vector<std::string> arguments;    // "--flag" and its values, each a word: "--flag a b"
  std::vector<std::string> environment;  // "NAME=value"
  std::vector<std::string> notes;   // where Megatron-LM differs from the cost model's assumptions
  std::vector<std::string> unsaid;  // numbers of the model that no argument says: "key value"
};

// What starts the training. Arguments of pretrain_gpt.py refuse Transformer Engine's loss since
// core 0.18.2 (megatron/training/arguments.py, validate_args) and lose the factor of Llama 3.1's
// rotary scaling (megatron/training/argument_utils.py hands --use-rope-scaling on alone); those of
// earlier releases take the loss, programs that set Megatron Core's configurations do neither.
enum class MegatronProgram { pretrain_gpt, early_pretrain_gpt, configurations };

// In the words of a release (--for-version), with what differs as notes. Throws
// costmodel::ConfigError as the other, and for what the release does not have.
MegatronExport export_megatron_for(const costmodel::Scenario& scenario,
                                   const costmodel::ParallelPlan& plan, const std::string& version);

// Throws costmodel::ConfigError when Megatron-LM would reject the plan.
MegatronExport export_megatron(const costmodel::Scenario& scenario,
                               const costmodel::ParallelPlan& plan,
                               MegatronProgram program = MegatronProgram::pretrain_gpt);

}  // namespace planner
