// What the library shows to the program that loads it.
#include "runtime/cuda/device_query.hpp"
#include "runtime/cuda/gpu_device.hpp"
#include "runtime/cuda_plugin.hpp"

namespace {

std::unique_ptr<runtime::Device> make_device(const runtime::GpuOptions& options) {
  return runtime::cuda::make_gpu_device(options);
}

constexpr runtime::CudaPlugin plugin{.report = runtime::cuda::query_devices,
                                     .make_device = make_device};

}  // namespace

extern "C" __attribute__((visibility("default"))) const runtime::CudaPlugin* shardplan_cuda_plugin(
    int interface) {
  return interface == runtime::cuda_plugin_interface ? &plugin : nullptr;
}
