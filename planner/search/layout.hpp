// Uneven layouts: which layers each (virtual) stage of a plan holds. The embedding and the loss are
// layers of their own, so the first and the last stage may hold nothing else; every other holds a
// layer at least. As Megatron's --pipeline-model-parallel-layout has it.
#pragma once

#include <functional>
#include <limits>
#include <vector>

#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/scenario/scenario.hpp"
#include "planner/solvers/stage_slicing.hpp"

namespace planner {

// As even as layers go, embedding and loss counted; the larger shares first.
std::vector<int> balanced_layout(std::int64_t layers, int stages);

// The plan's layers, embedding first and loss last, to be cut into its p stages of one chunk:
// a device of the problem stands for a whole stage. Times are the cost model's, and so is memory,
// for micro-batches in flight as the plan's schedule has them on each rank, below `limit` bytes.
// Stages that take longer than `longest` are left out.
SlicingProblem layout_problem(
    const costmodel::ParallelPlan& plan, costmodel::Bytes limit, costmodel::Evaluator& evaluator,
    costmodel::Seconds longest = costmodel::Seconds(std::numeric_limits<double>::infinity()));

// stage_layers of a slicing of layout_problem.
std::vector<int> layers_of(const Slicing& slicing);

struct Layout {
  std::vector<int> stage_layers;
  costmodel::Seconds iteration;  // simulated
  costmodel::Bytes peak;
};

// Moves one layer at a time from stage to stage as long as the simulated iteration gets shorter:
// to or from the rank that has most or least to do and the ends, of many stages only among these.
// `start` must fit below `limit`.
Layout improved_layout(costmodel::ParallelPlan plan, const std::vector<int>& start,
                       costmodel::Bytes limit, costmodel::Evaluator& evaluator,
                       const std::function<bool()>& expired = {});

}  // namespace planner
