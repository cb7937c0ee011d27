// The estimate of one plan, for who needs no prices and no second plan.
#pragma once

#include "costmodel/estimate/estimate.hpp"
#include "costmodel/machine/cluster_spec.hpp"
#include "costmodel/model/model_spec.hpp"
#include "costmodel/plan/parallel_plan.hpp"
#include "costmodel/plan/training_spec.hpp"

namespace costmodel {

// What an Evaluator of the three estimates for a valid plan. Of many plans an Evaluator is faster:
// it keeps the prices of layers.
Estimate estimate_of(const ModelSpec& model, const ClusterSpec& cluster,
                     const TrainingSpec& training, const ParallelPlan& plan);

}  // namespace costmodel
