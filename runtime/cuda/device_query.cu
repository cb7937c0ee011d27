#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include "runtime/cuda/device_query.hpp"
#include "runtime/cuda/error_text.hpp"
#include "runtime/cuda/nccl_fabric.hpp"

namespace runtime::cuda {
namespace {

CudaVersions query_versions() {
  CudaVersions versions;
  if (cudaDriverGetVersion(&versions.driver) != cudaSuccess) versions.driver = 0;
  if (cudaRuntimeGetVersion(&versions.runtime) != cudaSuccess) versions.runtime = 0;
  versions.cublas = static_cast<std::int64_t>(cublasLtGetVersion());
  versions.nccl = nccl_version();
  return versions;
}

Gpu describe(int device, const cudaDeviceProp& properties) {
  char bus[32] = "";
  if (cudaDeviceGetPCIBusId(bus, sizeof bus, device) != cudaSuccess) bus[0] = '\0';
  return {.name = properties.name,
          .compute_major = properties.major,
          .compute_minor = properties.minor,
          .memory_bytes = static_cast<std::int64_t>(properties.totalGlobalMem),
          .multiprocessors = properties.multiProcessorCount,
          .bus = std::string(bus)};
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
    report.gpus.push_back(describe(device, properties));
  }
  return report;
}

}  // namespace runtime::cuda
