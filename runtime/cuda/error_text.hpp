#pragma once

#include <cuda_runtime_api.h>

#include <string>

namespace runtime::cuda {

// What went wrong, as a sentence for the user; empty for cudaSuccess.
std::string error_text(cudaError_t status);

}  // namespace runtime::cuda
