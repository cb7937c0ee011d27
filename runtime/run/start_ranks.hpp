// Starts the ranks of a run and connects them: as threads, under MPI, or over TCP.
#pragma once

#include <functional>

#include "costmodel/plan/parallel_plan.hpp"
#include "runtime/backend/transport.hpp"
#include "runtime/run/early_end.hpp"
#include "runtime/run/run_command.hpp"

namespace runtime {

// Runs `program` as each rank of this process. Rank 0 reports to `end` what ends the run early.
// Throws RunFault.
using StartRanks = void (*)(const RunRequest& request, const costmodel::ParallelPlan& plan,
                            EarlyEnd& end, const std::function<void(Transport&)>& program);
StartRanks way_to_start(BackendKind backend);

// Throws RunFault when torchrun started this process and the backend would not run it as that rank.
void require_start(BackendKind backend);

}  // namespace runtime
