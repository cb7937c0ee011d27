#pragma once

#include "runtime/cuda_plugin.hpp"

namespace runtime::cuda {

// The GPUs this process can see. Works, and says why there are none, on a machine without a driver.
CudaReport query_devices();

}  // namespace runtime::cuda
