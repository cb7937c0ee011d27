// Turns error codes of CUDA's libraries into exceptions.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>

namespace runtime::cuda {

// Throw std::runtime_error with error_text() or the library's own message.
void check(cudaError_t status);
void check(cublasStatus_t status);

}  // namespace runtime::cuda
