// Small facts of a plan that several prices share.
#pragma once

#include "costmodel/op_list.hpp"
#include "costmodel/parallel_plan.hpp"

namespace costmodel {

// What the op list recomputes under a plan's granularity.
Recomputed region_of(Recomputation granularity);

// Layers of a virtual stage of `layers` that are recomputed; the others keep everything.
int recomputed_layers(const ParallelPlan& plan, int layers);

// The plan with the selective recomputation of stacks whose policy keeps every second product or
// layer (torchtitan): half of each stage's layers, in full.
ParallelPlan half_recomputed(ParallelPlan plan);

// Of `weights` parameters on a device, `experts` of them in experts, those that one rank keeps when
// they are sharded over the ranks that hold the same.
double sharded(double weights, double experts, const ParallelPlan& plan);

// Elements of one device's share of the (padded) token table, and so of the output projection.
double vocabulary_table(const ModelSpec& model, int tp);

}  // namespace costmodel
