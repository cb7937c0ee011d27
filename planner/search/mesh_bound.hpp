// A lower bound on the iteration of any pipeline of stages on submeshes, for one micro-batch size.
#pragma once

#include <vector>

#include "costmodel/scenario/scenario.hpp"
#include "planner/solvers/stage_slicing.hpp"

namespace planner {

// `groups`: one problem per group of devices, from StageOptions. Every micro-batch occupies each
// stage's devices for the stage's time, so an iteration takes at least the minimal device-seconds
// of stages that cover all layers, spread evenly over the devices; with several kinds of devices
// they are weighted by peak. Options count even if they do not fit in memory: a stage that
// recomputes only some of its layers lies between two of them. Waiting devices compute faster (idle
// boost), at most as much as in the longest pipeline.
costmodel::Seconds mesh_bound(const costmodel::Scenario& scenario,
                              const std::vector<SlicingProblem>& groups);

}  // namespace planner
