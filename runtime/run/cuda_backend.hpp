// GPUs as what computes: `shardplan run --backend cuda`.
#pragma once

#include "runtime/run/compute_backend.hpp"

namespace runtime {

const ComputeBackend& cuda_backend();

}  // namespace runtime
