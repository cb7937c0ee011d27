#include "costmodel/estimate/plan_estimate.hpp"

#include "costmodel/estimate/evaluator.hpp"

namespace costmodel {

Estimate estimate_of(const ModelSpec& model, const ClusterSpec& cluster,
                     const TrainingSpec& training, const ParallelPlan& plan) {
  return Evaluator(model, cluster, training).estimate(plan);
}

}  // namespace costmodel
