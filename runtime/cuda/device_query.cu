#include <cublasLt.h>
#include <cuda_runtime_api.h>
#ifdef SHARDPLAN_WITH_NCCL
#include <nccl.h>
#endif

#include "runtime/cuda/device_query.hpp"
#include "runtime/cuda/error_text.hpp"

namespace runtime::cuda {
namespace {

CudaVersions query_versions() {
  CudaVersions versions;
  if (cudaDriverGetVersion(&versions.driver) != cudaSuccess) versions.driver = 0;
  if (cudaRuntimeGetVersion(&versions.runtime) != cudaSuccess) versions.runtime = 0;
  versions.cublas = static_cast<std::int64_t>(cublasLtGetVersion());
#ifdef SHARDPLAN_WITH_NCCL
  if (ncclGetVersion(&versions.nccl) != ncclSuccess) versions.nccl = 0;
#endif
  return versions;
}

Gpu describe(const cudaDeviceProp& properties) {
  return {.name = properties.name,
          .compute_major = properties.major,
          .compute_minor = properties.minor,
          .memory_bytes = static_cast<std::int64_t>(properties.totalGlobalMem),
          .multiprocessors = properties.multiProcessorCount};
}

}  // namespace

CudaReport query_devices() {
  CudaReport report{.versions = query_versions()};
  int count = 0;
  if (const cudaError_t status = cudaGetDeviceCount(&count); status != cudaSuccess) {
    report.error = error_text(status);
    return report;
  }
  for (int device = 0; device < count; ++device) {
    cudaDeviceProp properties{};
    if (const cudaError_t status = cudaGetDeviceProperties(&properties, device);
        status != cudaSuccess) {
      report.error = error_text(status);
      return report;
    }
    report.gpus.push_back(describe(properties));
  }
  return report;
}

}  // namespace runtime::cuda
