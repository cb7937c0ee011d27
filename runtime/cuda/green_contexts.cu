#include "runtime/cuda/green_contexts.hpp"

#include <cuda.h>

#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/cuda/check.hpp"

namespace runtime::cuda {

namespace {

// CUDA 12.5 has all functions below. A fixed version, because a toolkit that is newer than the
// driver would ask for functions that the driver has not (cuda_runtime_api.h).
constexpr unsigned first_version = 12050;

// The driver's library is loaded, not linked: a machine without one gets an error message.
template <class Function>
Function* driver_function(const char* name, Function*) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult status{};
  check(cudaGetDriverEntryPointByVersion(name, &found, first_version, cudaEnableDefault, &status));
  if (status != cudaDriverEntryPointSuccess || found == nullptr)
    throw std::runtime_error(std::string("the driver has no ") + name +
                             ": it knows no virtual devices");
  return reinterpret_cast<Function*>(found);
}

#define SHARDPLAN_DRIVER(name) driver_function(#name, &name)

void check(CUresult status, const char* what) {
  if (status != CUDA_SUCCESS)
    throw std::runtime_error(std::string(what) + " fails with CUresult " +
                             std::to_string(static_cast<int>(status)));
}

struct Split {
  int each = 0;
  std::vector<CUgreenCtx> contexts;
};

Split made(int device, int parts, int each) {
  cuda::check(cudaSetDevice(device));
  cuda::check(cudaFree(nullptr));  // the primary context, which green ones share
  CUdevice handle = 0;
  check(SHARDPLAN_DRIVER(cuDeviceGet)(&handle, device), "cuDeviceGet");
  CUdevResource all{}, rest{};
  check(SHARDPLAN_DRIVER(cuDeviceGetDevResource)(handle, &all, CU_DEV_RESOURCE_TYPE_SM),
        "cuDeviceGetDevResource");
  std::vector<CUdevResource> resources(static_cast<std::size_t>(parts));
  auto count = static_cast<unsigned>(parts);
  check(SHARDPLAN_DRIVER(cuDevSmResourceSplitByCount)(resources.data(), &count, &all, &rest, 0,
                                                      static_cast<unsigned>(each)),
        "cuDevSmResourceSplitByCount");
  if (count < static_cast<unsigned>(parts))
    throw std::runtime_error("the driver makes " + std::to_string(count) + " of " +
                             std::to_string(parts) + " virtual devices");
  Split split{each, {}};
  for (CUdevResource& resource : resources) {
    CUdevResourceDesc description = nullptr;
    check(SHARDPLAN_DRIVER(cuDevResourceGenerateDesc)(&description, &resource, 1),
          "cuDevResourceGenerateDesc");
    CUgreenCtx context = nullptr;
    check(SHARDPLAN_DRIVER(cuGreenCtxCreate)(&context, description, handle,
                                             CU_GREEN_CTX_DEFAULT_STREAM),
          "cuGreenCtxCreate");
    split.contexts.push_back(context);
  }
  return split;
}

}  // namespace

cudaStream_t new_stream_of_part(int device, int parts, int each, int part) {
  static std::mutex mutex;
  static std::map<int, Split> splits;  // by device
  const std::lock_guard lock(mutex);
  auto found = splits.find(device);
  if (found == splits.end()) found = splits.emplace(device, made(device, parts, each)).first;
  const Split& split = found->second;
  if (split.each != each || split.contexts.size() != static_cast<std::size_t>(parts))
    throw std::runtime_error("a GPU is cut into virtual devices once");
  CUstream stream = nullptr;
  check(SHARDPLAN_DRIVER(cuGreenCtxStreamCreate)(
            &stream, split.contexts.at(static_cast<std::size_t>(part)), CU_STREAM_NON_BLOCKING, 0),
        "cuGreenCtxStreamCreate");
  return stream;
}

}  // namespace runtime::cuda
