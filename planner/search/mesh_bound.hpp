// What no pipeline of stages on submeshes takes less than, for one size of a micro-batch.
#pragma once

#include <vector>

#include "costmodel/scenario/scenario.hpp"
#include "planner/solvers/stage_slicing.hpp"

namespace planner {

// `groups` as StageOptions prices them, one for each group of devices. All micro-batches hold every
// stage's devices for as long as they take, so an iteration is no shorter than the least time of
// devices that stages of all layers add up to, shared out evenly over the devices; those of several
// kinds are weighed by their peak. Options count whether they fit in memory or not: a stage that
// recomputes only some of its layers lies between them. Devices that wait compute faster, by no
// more than they do in the longest pipeline.
costmodel::Seconds mesh_bound(const costmodel::Scenario& scenario,
                              const std::vector<SlicingProblem>& groups);

}  // namespace planner
