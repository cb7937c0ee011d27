// Exports a plan to nanotron 2411b022 (src/nanotron/config): a script that writes its YAML and
// starts run_train.py.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "costmodel/plan/parallel_plan.hpp"
#include "costmodel/scenario/scenario.hpp"

namespace planner {

// Empty when nanotron can run the plan. Never throws.
std::vector<costmodel::Violation> nanotron_violations(const costmodel::Scenario& scenario,
                                                      const costmodel::ParallelPlan& plan);

struct NanotronExport {
  std::string script;                                         // of bash
  std::vector<std::pair<std::string, std::string>> settings;  // "parallelism.tp", "2"
  std::vector<std::string> notes;
};

// Throws costmodel::ConfigError when nanotron cannot run the plan, and for a model that its
// LlamaConfig and Qwen2Config have no words for.
NanotronExport export_nanotron(const costmodel::Scenario& scenario,
                               const costmodel::ParallelPlan& plan);

}  // namespace planner
