// `shardplan run --backend emulated`: the plan's pipeline on ranks that sleep for the modelled
// times.
#pragma once

#include <optional>

#include "runtime/run/run_command.hpp"

namespace runtime {

// Runs on threads, on a virtual clock, or, when mpirun or srun started this process, with one
// process per pipeline rank; then only rank 0 returns a result. Throws like `run`.
std::optional<RunResult> emulate(const RunRequest& request);

}  // namespace runtime
