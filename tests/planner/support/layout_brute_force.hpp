// Every layout of the layers of a pipeline: the reference for what is found and proved of layouts.
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

}  // namespace layouts
