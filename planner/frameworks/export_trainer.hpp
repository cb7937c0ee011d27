// Exports a plan of fine-tuning or of training by data parallelism to the programs around Hugging
// Face's Trainer: a script that writes their YAML and starts it. Names as in axolotl 067b021c8
// (src/axolotl/utils/schemas), LLaMA-Factory ff6d4d12e (src/llamafactory/hparams) and accelerate
// 16cb6eb8 with TRL f2cd57710 (trl/scripts/sft.py).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "costmodel/plan/parallel_plan.hpp"
#include "costmodel/scenario/scenario.hpp"
#include "planner/exchange/exported.hpp"

namespace planner {

enum class TrainerTarget { axolotl, llama_factory, accelerate };

// Empty when the program can run the plan. Never throws.
std::vector<costmodel::Violation> trainer_violations(const costmodel::Scenario& scenario,
                                                     const costmodel::ParallelPlan& plan,
                                                     TrainerTarget target);

struct TrainerExport {
  std::string script;  // of bash
  std::vector<std::pair<std::string, std::string>>
      settings;  // "fsdp_config.offload_params", "true"
  std::vector<std::string> notes;
};

// Throws costmodel::ConfigError when the program cannot run the plan.
TrainerExport export_trainer(const costmodel::Scenario& scenario,
                             const costmodel::ParallelPlan& plan, TrainerTarget target);

}  // namespace planner
