// The compute backend of CPU cores: `shardplan run --backend threads|mpi|tcp`.
#pragma once

#include "runtime/run/compute_backend.hpp"

namespace runtime {

const ComputeBackend& cpu_backend();

}  // namespace runtime
