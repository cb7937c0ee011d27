// The schedule of a plan: generated, or the one that its file lists.
#pragma once

#include <cstdint>

#include "costmodel/plan/parallel_plan.hpp"
#include "costmodel/schedule/stage_times.hpp"
#include "costmodel/schedule/zero_bubble.hpp"

namespace costmodel {

// `times` and `shares` (PlanCost's) are read only where the schedule splits the backward and is
// generated. The number of micro-batches must be the file's where there is one.
Schedule schedule_of(const ParallelPlan& plan, std::int64_t micro_batches,
                     const PipelineTimes& times, const HeldShares& shares);

// Whether the gradients of a chunk are complete p micro-batches before those of the next.
bool in_whole_rounds(const ParallelPlan& plan);

}  // namespace costmodel
