// `shardplan calibrate --backend cuda`: measures a GPU and writes its profile.
#pragma once

#include "calibrate/commands/cpu_command.hpp"

namespace calibrate {

// As calibrate_cpu, of the first GPU in bf16. Throws runtime::RunFault, whose sentence says what is
// missing, where none can be measured.
std::string calibrate_gpu(const CpuRequest& request);

}  // namespace calibrate
