#include "runtime/cuda/check.hpp"

#include <stdexcept>

#include "runtime/cuda/error_text.hpp"

namespace runtime::cuda {

void check(cudaError_t status) {
  if (status != cudaSuccess) throw std::runtime_error(error_text(status));
}

void check(cublasStatus_t status) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw std::runtime_error(std::string("cuBLASLt reports ") + cublasLtGetStatusName(status) + ": " +
                           cublasLtGetStatusString(status));
}

}  // namespace runtime::cuda
