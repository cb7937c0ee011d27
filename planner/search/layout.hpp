// Uneven layouts: the layers of each (virtual) stage of a plan. Embedding and loss count as layers,
// so the first and the last stage may hold nothing else; every other stage holds at least one
// layer. Same rules as Megatron's --pipeline-model-parallel-layout.
#pragma once

#include <functional>
#include <limits>
#include <vector>

#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/scenario/scenario.hpp"
#include "planner/solvers/stage_slicing.hpp"

namespace planner {

// The most even layout, embedding and loss counted as layers; larger shares first.
std::vector<int> balanced_layout(std::int64_t layers, int stages);

// The slicing problem of the plan's layers, embedding first and loss last, into p stages of one
// chunk. A device of the problem stands for an entire stage. Times and memory are the cost model's,
// memory for the micro-batches in flight on each rank under the plan's schedule, below `limit`
// bytes. Stages that take longer than `longest` are omitted.
SlicingProblem layout_problem(
    const costmodel::ParallelPlan& plan, costmodel::Bytes limit, costmodel::Evaluator& evaluator,
    costmodel::Seconds longest = costmodel::Seconds(std::numeric_limits<double>::infinity()));

// The stage_layers of a slicing of layout_problem.
std::vector<int> layers_of(const Slicing& slicing);

struct Layout {
  std::vector<int> stage_layers;
  costmodel::Seconds iteration;  // simulated
  costmodel::Bytes peak;
};

// Local search: moves one layer at a time between stages while the simulated iteration gets
// shorter. It tries moves to or from the busiest rank, the least busy rank and the ends; with many
// stages, only moves among these. `start` must fit below `limit`.
Layout improved_layout(costmodel::ParallelPlan plan, const std::vector<int>& start,
                       costmodel::Bytes limit, costmodel::Evaluator& evaluator,
                       const std::function<bool()>& expired = {});

}  // namespace planner
