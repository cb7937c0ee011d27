// A GPU as a device: the kernels of runtime/kernels and cuBLASLt's products on it, in fp32.
#pragma once

#include <memory>

#include "runtime/device.hpp"

namespace runtime::cuda {

// `index` among the GPUs this process sees; `tf32`: products round what they multiply to TF32.
// Throws std::runtime_error where there is no such GPU.
std::unique_ptr<runtime::Device> make_gpu_device(int index, bool tf32);

}  // namespace runtime::cuda
