#pragma once

#include <cuda_runtime_api.h>

#include <string>

namespace runtime::cuda {

// The error as a sentence for the user; empty for cudaSuccess.
std::string error_text(cudaError_t status);

}  // namespace runtime::cuda
