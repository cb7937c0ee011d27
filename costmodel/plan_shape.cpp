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
  return plan.recompute.layers > 0 ? std::min(plan.recompute.layers, layers) : layers;
}

ParallelPlan half_recomputed(ParallelPlan plan, const ModelSpec& model) {
  const auto layers = static_cast<double>(model.layers) / plan.virtual_stages();
  plan.recompute = {Recomputation::full, std::max(1, static_cast<int>(layers / 2))};
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
