// Every layout of the layers of a pipeline: the reference for what is found and proved of layouts,
// and small scenarios that have layouts.
#pragma once

#include <algorithm>
#include <functional>
#include <limits>
#include <vector>

#include "costmodel/estimate/evaluator.hpp"

namespace layouts {

constexpr double infinity = std::numeric_limits<double>::infinity();

using Visit = std::function<void(const std::vector<int>&)>;

inline void visit_from(std::vector<int>& layout, int layers, int stages, const Visit& visit) {
  if (stages == 1) {
    layout.push_back(layers);
    visit(layout);
    layout.pop_back();
    return;
  }
  for (int n = layout.empty() ? 0 : 1; n <= layers; ++n) {
    layout.push_back(n);
    visit_from(layout, layers - n, stages - 1, visit);
    layout.pop_back();
  }
}

// Of so many layers on so many stages: only the first and the last may be without.
inline void visit_all(std::int64_t layers, int stages, const Visit& visit) {
  std::vector<int> layout;
  visit_from(layout, static_cast<int>(layers), stages, visit);
}

// Of all layouts that fit.
struct Best {
  double bound = infinity;  // of an iteration, as the cost model has it
  double time = infinity;   // simulated
};

inline Best best_of(costmodel::ParallelPlan plan, costmodel::Bytes limit,
                    costmodel::Evaluator& evaluator) {
  Best best;
  visit_all(evaluator.model().layers, plan.pp, [&](const std::vector<int>& layout) {
    plan.stage_layers = layout;
    const costmodel::PlanCost& cost = evaluator.cost(plan);
    if (cost.peak > limit) return;
    best.bound = std::min(best.bound, cost.bound.iteration.value);
    best.time = std::min(best.time, evaluator.iteration_time(plan).value);
  });
  return best;
}

inline constexpr const char* dense =
    "model: {kind: llama, layers: 10, hidden: 2048, heads: 16, kv_heads: 4, ffn_hidden: 8192, "
    "vocab: 128256}\ncluster: {base: dgx-h100, devices: 8}\n"
    "training: {global_batch: 32, sequence: 4096, stack: megatron-core-2026}\n";
inline constexpr const char* mixed =
    "model: {kind: moe, layers: 9, hidden: 1024, heads: 16, ffn_hidden: 4096, vocab: 128256, "
    "experts: 8, top_k: 2, expert_ffn_hidden: 1024, first_dense_layers: 3}\n"
    "cluster: {base: dgx-h100, devices: 8}\n"
    "training: {global_batch: 32, sequence: 4096, stack: megatron-core-2026}\n";
inline constexpr const char* two_stacks =
    "model: {kind: t5, encoder_layers: 4, decoder_layers: 5, hidden: 1024, heads: 16, "
    "ffn_hidden: 4096, vocab: 128256}\n"
    "cluster: {base: dgx-h100, devices: 8}\n"
    "training: {global_batch: 32, sequence: 2048, decoder_sequence: 1024, "
    "stack: megatron-core-2026}\n";

// On their eight devices.
inline costmodel::ParallelPlan pipeline(int pp, int tp) {
  costmodel::ParallelPlan plan;
  plan.pp = pp;
  plan.tp = tp;
  plan.dp = 8 / pp / tp;
  return plan;
}

}  // namespace layouts
