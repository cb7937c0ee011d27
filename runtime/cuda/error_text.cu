#include "runtime/cuda/error_text.hpp"

namespace runtime::cuda {
namespace {

std::string version_text(int version) {  // 13020 is CUDA 13.2
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string driver_text() {
  int driver = 0;
  int runtime = 0;
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  if (driver == 0) return "no CUDA driver on this machine";
  return "the CUDA driver serves CUDA " + version_text(driver) +
         ", and this program was built for CUDA " + version_text(runtime);
}

}  // namespace

std::string error_text(cudaError_t status) {
  if (status == cudaSuccess) return {};
  if (status == cudaErrorInsufficientDriver) return driver_text();
  if (status == cudaErrorNoDevice) return "no CUDA device is visible on this machine";
  return std::string("CUDA reports ") + cudaGetErrorName(status) + ": " +
         cudaGetErrorString(status);
}

}  // namespace runtime::cuda
