// Turns error codes of CUDA's libraries into exceptions.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <string_view>

namespace runtime::cuda {

// Throw std::runtime_error with error_text() or the library's own message, and with the operator
// that the thread issued last. They clear the runtime's last error, which a later launch that went
// well would report again.
void check(cudaError_t status);
void check(cublasStatus_t status);

// Names the operator that the calling thread issues from now on; `name` outlives its work.
void now_doing(std::string_view name);

}  // namespace runtime::cuda
