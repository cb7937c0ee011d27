// Small facts of a plan that several prices share.
#pragma once

#include "costmodel/op_list.hpp"
#include "costmodel/parallel_plan.hpp"

namespace costmodel {

// What the op list recomputes under a plan's granularity.
Recomputed region_of(Recomputation granularity);

// Layers of a virtual stage of `layers` that are recomputed; the others keep everything.
int recomputed_layers(const ParallelPlan& plan, int layers);

// Elements of one device's share of the (padded) token table, and so of the output projection.
double vocabulary_table(const ModelSpec& model, int tp);

}  // namespace costmodel
