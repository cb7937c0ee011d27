// Stage slicing over several kinds of devices. The pipeline passes through the groups of devices in
// a given order, every stage lies within one group, and every group is used completely. The
// objective, (sum of stage times) + (m - 1) · (longest stage time), and the memory limit are those
// of stage_slicing.
//
// Exact. The position in the pipeline determines the group of the next devices, so the groups form
// one list of devices, and Alpa's recurrence (arXiv:2201.12023, section 5.2, equation 3) holds with
// position-dependent options. The longest time is found by branch and bound over intervals of its
// candidates: the recurrence's result for the largest candidate of an interval bounds the interval.
// The effort grows with layers² x devices x options, so this is for tens of devices per group;
// stage_slicing handles thousands of one kind.
#pragma once

#include <functional>
#include <vector>

#include "planner/solvers/stage_slicing.hpp"

namespace planner {

// `groups`: one problem per group in pipeline order, with equal layers and micro-batches; its
// options are those of a stage on its devices. Never throws; a result without stages has a
// `reason`.
Slicing best_group_slicing(const std::vector<SlicingProblem>& groups,
                           const std::function<bool()>& expired = {});

}  // namespace planner
