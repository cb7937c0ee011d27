#include "runtime/cuda/check.hpp"

#include <stdexcept>
#include <string>

#include "runtime/cuda/error_text.hpp"

namespace runtime::cuda {

namespace {

thread_local std::string_view doing;

// A GPU works behind the host: only with CUDA_LAUNCH_BLOCKING=1 the operator is surely the culprit.
[[noreturn]] void fail(std::string text) {
  if (!doing.empty()) text += " (the last operator issued: " + std::string(doing) + ")";
  throw std::runtime_error(text);
}

}  // namespace

void check(cudaError_t status) {
  if (status == cudaSuccess) return;
  cudaGetLastError();
  fail(error_text(status));
}

void check(cublasStatus_t status) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  cudaGetLastError();
  fail(std::string("cuBLASLt reports ") + cublasLtGetStatusName(status) + ": " +
       cublasLtGetStatusString(status));
}

void now_doing(std::string_view name) { doing = name; }

}  // namespace runtime::cuda
