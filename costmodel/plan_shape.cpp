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

Recompute recompute_as_run(const Recompute& asked, const StackSpec& stack) {
  const bool halves = stack.selective_half && asked.granularity == Recomputation::selective;
  return halves ? Recompute{Recomputation::full, Recompute::half} : asked;
}

int recomputed_layers(const Recompute& recompute, int layers) {
  if (recompute.layers == Recompute::half) return std::min(std::max(1, layers / 2), layers);
  return recompute.layers > 0 ? std::min(recompute.layers, layers) : layers;
}

LayerMix layer_mix(const ModelSpec& model, std::int64_t first, int layers,
                   const Recompute& recompute) {
  const int again = recomputed_layers(recompute, layers);
  const auto moe = static_cast<int>(model.moe_layers(first, layers));
  const auto moe_again = static_cast<int>(model.moe_layers(first, again));
  return {layers - moe, moe, again - moe_again, moe_again};
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
