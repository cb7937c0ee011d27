// What ranks of an encoder-decoder model's pipeline send one another, by its shapes.
#pragma once

#include <vector>

#include "costmodel/estimate/plan_cost.hpp"
#include "costmodel/scenario/scenario.hpp"
#include "planner/report/explain_stages.hpp"

namespace planner {

// Group "pipeline": the split rank, and for each rank the tensors that it sends on for a
// micro-batch, (tokens, sequences, hidden) as Megatron-LM's get_tensor_shapes has them
// (core/pipeline_parallel/schedules.py of core 0.2 to 0.11): the encoder's hidden states before
// the split rank; from it on the decoder's, and the encoder's output that later ranks attend to.
// Equal neighbours share a row. Nothing for other models, and for a plan without a pipeline.
std::vector<Explained> explained_boundaries(const costmodel::ParallelPlan& plan,
                                            const costmodel::Scenario& scenario,
                                            const costmodel::PlanCost& cost);

}  // namespace planner
