// Stage slicing over devices of several kinds: the pipeline goes through the groups of devices in a
// given order, a stage lies within one group, and every group is used up. The objective is that of
// stage_slicing, (sum of stage times) + (m - 1) · (longest stage time), and so is the memory limit.
//
// Exact. A position in the pipeline says which group the next devices are of, so that the groups
// make one list of devices and Alpa's recurrence (arXiv:2201.12023, section 5.2, equation 3) holds
// with options that depend on the position. The longest time is searched by branch and bound over
// intervals of its candidates: what the recurrence finds for the largest of an interval bounds all
// of it. Effort grows with layers² x devices x options, so this is for tens of devices a group and
// stage_slicing for one kind of thousands.
#pragma once

#include <functional>
#include <vector>

#include "planner/solvers/stage_slicing.hpp"

namespace planner {

// `groups` in the order of the pipeline, of the same layers and micro-batches; the options of one
// are those of a stage on its devices. Never throws; a slicing without stages says why in `reason`.
Slicing best_group_slicing(const std::vector<SlicingProblem>& groups,
                           const std::function<bool()>& expired = {});

}  // namespace planner
