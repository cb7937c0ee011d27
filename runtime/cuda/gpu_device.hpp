// A GPU as a device: the kernels of runtime/kernels, and products by cuBLASLt.
#pragma once

#include <memory>

#include "runtime/backend/cuda_library.hpp"

namespace runtime::cuda {

// Throws std::runtime_error when there is no such GPU.
std::unique_ptr<runtime::Device> make_gpu_device(const GpuOptions& options);

}  // namespace runtime::cuda
