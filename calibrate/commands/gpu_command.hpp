// `shardplan calibrate --backend cuda`: measures a GPU and writes its profile.
#pragma once

#include "calibrate/commands/cpu_command.hpp"

namespace calibrate {

// Like calibrate_cpu, for the first GPU: all operators in bf16, products in fp32, fp16 and fp8 too.
// The minutes are those of measuring; filling tensors and warming up come to a few seconds more.
// Throws runtime::RunFault, whose sentence names what is missing, when no GPU can be measured.
std::string calibrate_gpu(const CpuRequest& request);

}  // namespace calibrate
