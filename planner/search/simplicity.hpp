// How simple a plan is.
#pragma once

#include "costmodel/plan/parallel_plan.hpp"

namespace planner {

// What a plan needs besides data parallelism; less is simpler. Features are counted first: layers
// that differ by stage (but for a last one with the rest), virtual stages, each of tensor,
// pipeline, context and expert parallelism, ZeRO 3, a schedule with a split backward, recomputation
// of a number of layers, groups of micro-batches larger than the pipeline, stages with sizes of
// their own, and host memory. Of as many, the plan with even layers is simpler, then the one with
// fewer virtual stages, then the one with fewer parallel dimensions.
struct Simplicity {
  int features = 0;
  bool uneven_layers = false;
  int virtual_stages = 1;
  int dimensions = 0;
  bool recomputes_by_count = false;
  auto operator<=>(const Simplicity&) const = default;
};
Simplicity simplicity(const costmodel::ParallelPlan& plan);

}  // namespace planner
