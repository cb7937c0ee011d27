// The contribution of each operator of a layer, and of each layer of a stage, to the time of a
// micro-batch.
#pragma once

#include <string>
#include <vector>

#include "costmodel/estimate/kernel_list.hpp"
#include "costmodel/estimate/plan_cost.hpp"
#include "planner/report/table.hpp"

namespace costmodel {
class Evaluator;
}  // namespace costmodel

namespace planner {

// Times of one micro-batch on one device. Communication counts only where exposed.
struct OperatorTime {
  std::string name, shape;  // shape: on one device
  costmodel::Flops flops;   // model FLOPs, forward
  costmodel::Seconds forward, backward;
  costmodel::Bytes kept;  // kept from forward to backward
};

// The operators of a layer in order, then the time in which the device waits for kernel launches,
// if any. They sum to the layer's price (LayerCost).
std::vector<OperatorTime> operator_times(costmodel::LayerKind kind,
                                         const costmodel::ParallelPlan& plan,
                                         costmodel::Evaluator& evaluator);
Table operator_table(const std::vector<OperatorTime>& operators);

struct StagePart {
  std::string name;
  int layers = 0;  // number of layers; 0 for other parts
  costmodel::Seconds forward, backward;
};

// The parts of a virtual stage of a priced plan, which sum to its forward and backward: layers as
// in operator_times, then the stage's other terms. `own` is the stage's plan; `evaluator` is one of
// its devices, and may be the one that computed the price.
std::vector<StagePart> stage_parts(const costmodel::PlanCost& cost, std::size_t stage,
                                   const costmodel::ParallelPlan& own,
                                   costmodel::Evaluator& evaluator);
// With a row for the sum.
Table stage_table(const std::vector<StagePart>& parts);

// What a stage launches, the longest first: of a micro-batch, of the optimizer an iteration.
Table kernel_table(const costmodel::StageKernels& stage);
// A pass of one layer of each kind: which of host and device needs longer, and so sets the pace.
Table pace_table(const costmodel::StageKernels& stage);

// The kinds of layers of a model, first to last.
std::vector<costmodel::LayerKind> layer_kinds(const costmodel::ModelSpec& model);

}  // namespace planner
