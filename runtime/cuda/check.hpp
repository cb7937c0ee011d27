// Faults of CUDA's libraries as exceptions.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>

namespace runtime::cuda {

// Throw std::runtime_error with error_text() or the library's own words.
void check(cudaError_t status);
void check(cublasStatus_t status);

}  // namespace runtime::cuda
