// What a plan has beyond data, tensor and pipeline parallelism: by these a report names what
// no published run has had.
#pragma once

#include <array>
#include <string_view>
#include <vector>

namespace costmodel {

struct ParallelPlan;

enum class PlanFeature {
  context_parallel,
  expert_tensor,
  expert_overlap,
  virtual_stages,
  split_backward,
  two_way,
  uneven_layers,
  own_sizes,
  zero_2,
  zero_3,
  zero_3_in_pipeline,
  shard_groups,
  zero_plus_plus,
  selective_recompute,
  module_recompute,
  full_recompute,
  partial_recompute,
  states_in_host,
  activations_in_host
};

// As configs/residuals.yaml and reports name them: "a published run with ...".
inline constexpr std::array<std::string_view, 19> plan_feature_names{
    "context parallelism",
    "tensor parallelism inside experts",
    "overlapped exchange of experts",
    "virtual stages",
    "a split backward",
    "a two-way schedule",
    "stages of unequal layers",
    "stages or replicas of own sizes",
    "ZeRO 2",
    "ZeRO 3",
    "ZeRO 3 in a pipeline",
    "groups of shards",
    "ZeRO++",
    "selective recomputation",
    "recomputation by modules",
    "full recomputation",
    "recomputation of some layers",
    "states in host memory",
    "activations in host memory"};

// A set of them: one bit each.
using PlanFeatures = unsigned;
constexpr PlanFeatures bit_of(PlanFeature feature) { return 1U << static_cast<unsigned>(feature); }

PlanFeatures features_of(const ParallelPlan& plan);

std::vector<std::string_view> names_of(PlanFeatures features);

}  // namespace costmodel
