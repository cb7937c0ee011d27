// Small facts of a plan that several prices share.
#pragma once

#include <compare>
#include <cstdint>

#include "costmodel/op_list.hpp"
#include "costmodel/parallel_plan.hpp"

namespace costmodel {

// Layers of a virtual stage by kind, and how many of each are recomputed.
struct LayerMix {
  int dense = 0, moe = 0;
  int dense_again = 0, moe_again = 0;
  auto operator<=>(const LayerMix&) const = default;
};

// What the op list recomputes under a plan's granularity.
Recomputed region_of(Recomputation granularity);

// What a stack makes of the recomputation that a plan asks for: where its selective policy keeps
// every second product or layer (torchtitan), half of each stage's layers in full.
Recompute recompute_as_run(const Recompute& asked, const StackSpec& stack);

// Layers of a virtual stage of `layers` that are recomputed; the others keep everything.
int recomputed_layers(const Recompute& recompute, int layers);

// A virtual stage of the model's layers from `first` on, the first of them recomputed.
LayerMix layer_mix(const ModelSpec& model, std::int64_t first, int layers,
                   const Recompute& recompute);

// Of `weights` parameters on a device, `experts` of them in experts, those that one rank keeps when
// they are sharded over the ranks that hold the same.
double sharded(double weights, double experts, const ParallelPlan& plan);

// Elements of one device's share of the (padded) token table, and so of the output projection.
double vocabulary_table(const ModelSpec& model, int tp);

}  // namespace costmodel
