// Exports a plan to NeMo 2.x: attributes of its recipe llm.gpt3_175b, and the launch with NeMo-Run
// (nemo/collections/llm/recipes of NVIDIA/NeMo; the lists of tests/planner/support/nemo_keys.txt).
// NeMo 3 has no language models: their place is Megatron-Bridge.
#pragma once

#include <vector>

#include "costmodel/plan/parallel_plan.hpp"
#include "costmodel/scenario/scenario.hpp"
#include "planner/frameworks/export_overrides.hpp"

namespace planner {

// Empty when NeMo 2.x accepts the plan and has a field for all of it. Never throws.
std::vector<costmodel::Violation> nemo_violations(const costmodel::Scenario& scenario,
                                                  const costmodel::ParallelPlan& plan);

// The script writes a Python program and starts it on every device. Throws costmodel::ConfigError
// for the first violation.
OverridesScript export_nemo(const costmodel::Scenario& scenario,
                            const costmodel::ParallelPlan& plan);

}  // namespace planner
