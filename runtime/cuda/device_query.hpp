#pragma once

#include "runtime/backend/cuda_library.hpp"

namespace runtime::cuda {

// The GPUs visible to this process. On a machine without a driver it reports why there are none.
CudaReport query_devices();

}  // namespace runtime::cuda
