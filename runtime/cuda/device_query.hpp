#pragma once

#include "runtime/backend/cuda_library.hpp"

namespace runtime::cuda {

// The GPUs this process can see. Works, and says why there are none, on a machine without a driver.
CudaReport query_devices();

}  // namespace runtime::cuda
