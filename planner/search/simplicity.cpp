#include "planner/search/simplicity.hpp"

#include <cstdint>
#include <numeric>

namespace planner {

using namespace costmodel;

namespace {

template <class Has>
bool any_stage(const ParallelPlan& plan, const Has& has) {
  for (int k = 0; k < plan.different_stages(); ++k)
    if (has(plan.stage(k))) return true;
  return false;
}

// Data parallelism is in every plan, and is what all others are compared with. ZeRO 3 counts like a
// dimension: weights are gathered for every use.
int dimensions_of(const ParallelPlan& plan) {
  return (plan.pp > 1 ? 1 : 0) + any_stage(plan, [](const StagePlan& s) { return s.tp > 1; }) +
         any_stage(plan, [](const StagePlan& s) { return s.cp > 1; }) +
         any_stage(plan, [](const StagePlan& s) { return s.ep > 1; }) +
         any_stage(plan, [](const StagePlan& s) { return s.zero == 3; });
}

// Equal shares, of which the last stage takes what is left, need no list: 61 layers are 15 times 4,
// and 1.
bool has_uneven_layers(const ParallelPlan& plan) {
  const auto& layers = plan.stage_layers;
  const auto sum = std::accumulate(layers.begin(), layers.end(), std::int64_t{0});
  return !layers.empty() && layers != rest_on_last(sum, static_cast<std::int64_t>(layers.size()));
}

}  // namespace

Simplicity simplicity(const ParallelPlan& plan) {
  Simplicity s{.uneven_layers = has_uneven_layers(plan),
               .virtual_stages = plan.vpp,
               .dimensions = dimensions_of(plan)};
  s.recomputes_by_count =
      any_stage(plan, [](const StagePlan& stage) { return stage.recompute.layers > 0; });
  s.features = s.dimensions + (s.uneven_layers ? 1 : 0) + (plan.vpp > 1 ? 1 : 0) +
               (s.recomputes_by_count ? 1 : 0) + (splits_backward(plan.schedule) ? 1 : 0) +
               (plan.even() ? 0 : 1) + (plan.offload.any() ? 1 : 0) +
               (plan.choices.group > 0 ? 1 : 0);
  return s;
}

}  // namespace planner
