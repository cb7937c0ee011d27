// Starts the ranks of a run and connects them: as threads, under MPI, or over TCP. Each is a
// StartRanks.
#pragma once

#include <functional>

#include "costmodel/plan/parallel_plan.hpp"
#include "runtime/backend/transport.hpp"
#include "runtime/run/early_end.hpp"
#include "runtime/run/run_command.hpp"

namespace runtime {

void train_on_threads(const RunRequest& request, const costmodel::ParallelPlan& plan, EarlyEnd& end,
                      const std::function<void(Transport&)>& program);

void train_under_mpi(const RunRequest& request, const costmodel::ParallelPlan& plan, EarlyEnd& end,
                     const std::function<void(Transport&)>& program);

void train_over_tcp(const RunRequest& request, const costmodel::ParallelPlan& plan, EarlyEnd& end,
                    const std::function<void(Transport&)>& program);

// As the ranks of mpirun, srun or torchrun, when one of them started this process; else on threads.
void train_as_launched(const RunRequest& request, const costmodel::ParallelPlan& plan,
                       EarlyEnd& end, const std::function<void(Transport&)>& program);

}  // namespace runtime
