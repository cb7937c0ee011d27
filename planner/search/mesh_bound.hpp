// A lower bound on the iteration of any pipeline of stages on submeshes, for one micro-batch size.
#pragma once

#include <vector>

#include "costmodel/scenario/scenario.hpp"
#include "planner/solvers/stage_slicing.hpp"

namespace planner {

// `groups`: one problem per group of devices, from StageOptions. Every micro-batch occupies each
// stage's devices for the stage's time, so an iteration takes at least the minimal device-seconds
// of stages that cover all layers, spread evenly over the devices; with several kinds of devices
// they are weighted by peak. It knows no bubble, but costs next to nothing: best_submesh_cut begins
// with it.
costmodel::Seconds mesh_bound(const costmodel::Scenario& scenario,
                              const std::vector<SlicingProblem>& groups);

}  // namespace planner
