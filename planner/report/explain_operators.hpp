// What the operators of a layer, and the layers of a stage, add to the time of a micro-batch.
#pragma once

#include <string>
#include <vector>

#include "costmodel/estimate/evaluator.hpp"
#include "planner/report/table.hpp"

namespace planner {

// Of one micro-batch on one device. Communication is what no computation hides.
struct OperatorTime {
  std::string name, shape;  // the shape on one device
  costmodel::Flops flops;   // the model's, of forward
  costmodel::Seconds forward, backward;
  costmodel::Bytes kept;  // from forward to backward
};

// The operators of a layer in order, and behind them the time in which the device waits for the
// host to launch them, where there is any. They add up to the layer's price (LayerCost).
std::vector<OperatorTime> operator_times(costmodel::LayerKind kind,
                                         const costmodel::ParallelPlan& plan,
                                         costmodel::Evaluator& evaluator);
Table operator_table(const std::vector<OperatorTime>& operators);

struct StagePart {
  std::string name;
  int layers = 0;  // that it is of; 0 where it is of none
  costmodel::Seconds forward, backward;
};

// A virtual stage of a priced plan, whose parts add up to its forward and backward: layers as
// operator_times has them, then what the stage has besides. `own` is the stage's plan, `evaluator`
// one of its devices, which the price may be of.
std::vector<StagePart> stage_parts(const costmodel::PlanCost& cost, std::size_t stage,
                                   const costmodel::ParallelPlan& own,
                                   costmodel::Evaluator& evaluator);
// With the sum below.
Table stage_table(const std::vector<StagePart>& parts);

// The kinds of layers that a model has, first to last.
std::vector<costmodel::LayerKind> layer_kinds(const costmodel::ModelSpec& model);

}  // namespace planner
