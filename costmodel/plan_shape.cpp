#include "costmodel/plan_shape.hpp"

#include <algorithm>

namespace costmodel {

Recomputed region_of(Recomputation granularity) {
  switch (granularity) {
    case Recomputation::none: return Recomputed::nothing;
    case Recomputation::selective: return Recomputed::attention_core;
    case Recomputation::full: return Recomputed::everything;
  }
  return Recomputed::nothing;
}

int recomputed_layers(const ParallelPlan& plan, int layers) {
  if (plan.recompute.layers == Recompute::half) return std::min(std::max(1, layers / 2), layers);
  return plan.recompute.layers > 0 ? std::min(plan.recompute.layers, layers) : layers;
}

ParallelPlan half_recomputed(ParallelPlan plan) {
  plan.recompute = {Recomputation::full, Recompute::half};
  return plan;
}

double sharded(double weights, double experts, const ParallelPlan& plan) {
  return (weights - experts) / plan.replicas() +
         experts / static_cast<double>(plan.expert_replicas());
}

double vocabulary_table(const ModelSpec& model, int tp) {
  const std::int64_t rows = padded_vocab(model.vocab, tp) / tp;
  return static_cast<double>(rows * model.hidden);
}

}  // namespace costmodel
