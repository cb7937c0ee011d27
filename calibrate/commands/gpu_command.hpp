// `shardplan calibrate --backend cuda`: measures a GPU and writes its profile.
#pragma once

#include "calibrate/commands/cpu_command.hpp"

namespace calibrate {

// Like calibrate_cpu, for the first GPU, in bf16. Throws runtime::RunFault, whose sentence names
// what is missing, when no GPU can be measured.
std::string calibrate_gpu(const CpuRequest& request);

}  // namespace calibrate
