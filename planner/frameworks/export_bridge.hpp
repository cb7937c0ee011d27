// Exports a plan to Megatron-Bridge 0.6: overrides of its vanilla_gpt_pretrain_config, whose fields
// stand at the defaults of Megatron Core, and the launch (docs/recipe-usage.md of
// NVIDIA-NeMo/Megatron-Bridge; recipes/gpt/h100/vanilla_gpt.py, commit 0cabbd55).
#pragma once

#include "costmodel/plan/parallel_plan.hpp"
#include "costmodel/scenario/scenario.hpp"
#include "planner/frameworks/export_overrides.hpp"

namespace planner {

// The script writes a Python program and starts it on every device. Throws costmodel::ConfigError
// when Megatron Core would reject the plan.
OverridesScript export_bridge(const costmodel::Scenario& scenario,
                              const costmodel::ParallelPlan& plan);

}  // namespace planner
