// The entry point of libshardplan-cuda.so: the one C symbol that backend/cuda_library.cpp looks up.
#include "runtime/backend/cuda_library.hpp"
#include "runtime/cuda/device_query.hpp"
#include "runtime/cuda/gpu_device.hpp"
#include "runtime/cuda/nccl_fabric.hpp"

namespace {

std::unique_ptr<runtime::Device> make_device(const runtime::GpuOptions& options) {
  return runtime::cuda::make_gpu_device(options);
}

std::unique_ptr<runtime::Fabric> make_fabric(runtime::Device& device,
                                             const runtime::FabricRequest& request) {
  return runtime::cuda::make_nccl_fabric(*device.streams(), request);
}

constexpr runtime::CudaPlugin plugin{.report = runtime::cuda::query_devices,
                                     .make_device = make_device,
                                     .nccl_missing = runtime::cuda::nccl_missing,
                                     .make_fabric_id = runtime::cuda::make_nccl_id,
                                     .make_fabric = make_fabric};

}  // namespace

extern "C" __attribute__((visibility("default"))) const runtime::CudaPlugin* shardplan_cuda_plugin(
    int interface) {
  return interface == runtime::cuda_plugin_interface ? &plugin : nullptr;
}
