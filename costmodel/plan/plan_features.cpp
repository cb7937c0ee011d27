#include "costmodel/plan/plan_features.hpp"

#include <algorithm>
#include <functional>

#include "costmodel/plan/parallel_plan.hpp"

namespace costmodel {

namespace {

PlanFeatures only_if(bool has, PlanFeature feature) { return has ? bit_of(feature) : 0; }

PlanFeatures of_recomputation(const Recompute& r) {
  switch (r.granularity) {
    case Recomputation::none: return 0;
    case Recomputation::selective:
      return bit_of(r.modules == 0 ? PlanFeature::selective_recompute
                                   : PlanFeature::module_recompute);
    case Recomputation::full: break;
  }
  return bit_of(r.layers > 0 ? PlanFeature::partial_recompute : PlanFeature::full_recompute);
}

PlanFeatures of_sizes(const StagePlan& stage, int pp) {
  return only_if(stage.cp > 1, PlanFeature::context_parallel) |
         only_if(stage.etp > 1, PlanFeature::expert_tensor) |
         only_if(stage.zero == 2, PlanFeature::zero_2) |
         only_if(stage.zero == 3, PlanFeature::zero_3) |
         only_if(stage.zero == 3 && pp > 1, PlanFeature::zero_3_in_pipeline) |
         of_recomputation(stage.recompute);
}

bool has_unequal_layers(const ParallelPlan& plan) {
  const auto& layers = plan.stage_layers;
  return std::ranges::adjacent_find(layers, std::ranges::not_equal_to{}) != layers.end();
}

}  // namespace

PlanFeatures features_of(const ParallelPlan& plan) {
  PlanFeatures all = only_if(plan.ep > 1 && plan.experts.overlap, PlanFeature::expert_overlap) |
                     only_if(plan.vpp > 1, PlanFeature::virtual_stages) |
                     only_if(splits_backward(plan.schedule), PlanFeature::split_backward) |
                     only_if(row_of(plan.schedule).two_way, PlanFeature::two_way) |
                     only_if(has_unequal_layers(plan), PlanFeature::uneven_layers) |
                     only_if(!plan.even(), PlanFeature::own_sizes) |
                     only_if(plan.dp_replicate > 1, PlanFeature::shard_groups) |
                     only_if(plan.zero_plus_plus.any(), PlanFeature::zero_plus_plus) |
                     only_if(plan.offload.states(), PlanFeature::states_in_host) |
                     only_if(plan.offload.activations(), PlanFeature::activations_in_host);
  for (int k = 0; k < plan.different_stages(); ++k) all |= of_sizes(plan.stage(k), plan.pp);
  for (const ReplicaGroup& group : plan.replica_groups)
    all |= of_sizes({.recompute = group.recompute, .zero = group.zero}, group.pp);
  return all;
}

std::vector<std::string_view> names_of(PlanFeatures features) {
  std::vector<std::string_view> names;
  for (unsigned i = 0; i < plan_feature_names.size(); ++i)
    if ((features >> i & 1U) != 0) names.push_back(plan_feature_names[i]);
  return names;
}

}  // namespace costmodel
