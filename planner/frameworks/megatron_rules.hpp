// The assertions of Megatron-LM core 0.20 about a plan (arguments.py, transformer_config.py,
// parallel_state.py), checked independently of Shardplan's own rules, so that an exported script
// starts.
#pragma once

#include <string>
#include <vector>

#include "costmodel/plan/parallel_plan.hpp"
#include "costmodel/scenario/scenario.hpp"

namespace planner {

// Empty when Megatron-LM accepts the plan and can express it. Never throws.
std::vector<costmodel::Violation> megatron_violations(const costmodel::Scenario& scenario,
                                                      const costmodel::ParallelPlan& plan);

// Whether stages have different numbers of layers, so that the plan needs an explicit layout.
bool has_uneven_stages(const costmodel::ParallelPlan& plan);

// The value of --pipeline-model-parallel-layout: "Et*2|t*3|t*3|t*2,L". E is the embedding, t a
// layer, m one of multi-token prediction (as many as mtp_num_layers, behind the last layer), L the
// output layer with the loss. Cell s is chunk s / p of rank s mod p, as in
// stage_layers.
std::string pipeline_layout(const costmodel::ParallelPlan& plan, std::int64_t mtp_layers = 0);

// The two rank orders that Megatron-LM offers; axes of size 1 are ignored.
enum class RankOrder { tensor_data_pipeline, tensor_pipeline_data, other };
RankOrder rank_order_of(const costmodel::ParallelPlan& plan);

}  // namespace planner
