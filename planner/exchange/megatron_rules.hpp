// What Megatron-LM core 0.20 asserts of a plan (arguments.py, transformer_config.py,
// parallel_state.py), checked again apart from our own rules: an exported script must start.
#pragma once

#include <string>
#include <vector>

#include "costmodel/plan/parallel_plan.hpp"
#include "costmodel/scenario/scenario.hpp"

namespace planner {

// Empty when Megatron-LM would accept the plan and can express it. Never throws.
std::vector<costmodel::Violation> megatron_violations(const costmodel::Scenario& scenario,
                                                      const costmodel::ParallelPlan& plan);

// Whether the stages hold different numbers of layers, so that the plan needs a layout.
bool has_uneven_stages(const costmodel::ParallelPlan& plan);

// The value of --pipeline-model-parallel-layout: "Et*2|t*3|t*3|t*2,L". E is the embedding, t a
// layer, L the output with the loss. Cell s is chunk s / p of rank s mod p, as in stage_layers.
std::string pipeline_layout(const costmodel::ParallelPlan& plan);

// The two rank orders Megatron-LM offers; axes of one rank have no say.
enum class RankOrder { tensor_data_pipeline, tensor_pipeline_data, other };
RankOrder rank_order_of(const costmodel::ParallelPlan& plan);

}  // namespace planner
