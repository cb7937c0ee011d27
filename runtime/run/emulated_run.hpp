// `shardplan run --backend emulated`: the plan's pipeline on ranks that wait the modelled time.
#pragma once

#include <optional>

#include "runtime/run/run_command.hpp"

namespace runtime {

// On threads, on a virtual clock, or, where mpirun or srun started this process, on one process a
// pipeline rank: then the result is rank 0's alone. Throws as `run` does.
std::optional<RunResult> emulate(const RunRequest& request);

}  // namespace runtime
