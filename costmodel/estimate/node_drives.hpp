// What plan.offload keeps on the NVMe drives of a node, the host's memory that it passes through,
// and what is read and written there (ZeRO-Infinity, Rajbhandari et al. 2021, arXiv:2104.07857).
#pragma once

#include "costmodel/estimate/plan_cost.hpp"
#include "costmodel/estimate/plan_inputs.hpp"

namespace costmodel {

// Of one rank.
struct RankDrives {
  Bytes kept;
  Bytes pinned;         // host memory: buffers, and parameters that do not leave it
  Bytes fetched;        // read for a pass over all layers
  Bytes read, written;  // of the optimizer's step, and what it needs
};

RankDrives rank_drives(const PlanInputs& in, const RankWeights& rank);

// The ranks of a node share its drives.
Seconds fetch_time(const PlanInputs& in, const RankDrives& own);
Seconds step_time(const PlanInputs& in, const RankDrives& own);

}  // namespace costmodel
