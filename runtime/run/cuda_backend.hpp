// The compute backend of GPUs: `shardplan run --backend cuda`.
#pragma once

#include "runtime/run/compute_backend.hpp"

namespace runtime {

const ComputeBackend& cuda_backend();

}  // namespace runtime
