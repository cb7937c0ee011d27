// The CUDA part of the program: a library of its own, loaded when it is asked for, so that nothing
// else needs a GPU, a driver or CUDA's libraries.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/backend/device.hpp"
#include "runtime/backend/fabric.hpp"

namespace runtime {

struct Gpu {
  std::string name;
  int compute_major = 0;  // compute capability, 9.0 on Hopper
  int compute_minor = 0;
  std::int64_t memory_bytes = 0;
  int multiprocessors = 0;
  std::string bus;  // "0000:1b:00.0"
};

// Version numbers as each library encodes them (CUDA 13.0 is 13000); 0 where there is none.
struct CudaVersions {
  int driver = 0;  // the newest CUDA that the installed driver serves
  int runtime = 0;
  std::int64_t cublas = 0;
  int nccl = 0;
};

struct CudaReport {
  std::vector<Gpu> gpus;  // that this process sees
  CudaVersions versions;
  std::string error;  // a sentence when they could not be listed, else empty
};

// Why one of these GPUs has no products in fp8, with a remedy; "" where all have.
std::string fp8_missing(const std::vector<Gpu>& gpus);

struct GpuOptions {
  int index = 0;                // among the report's
  Number number = Number::f32;  // of weights and activations
  bool tf32 = false;            // fp32 products round what they multiply to TF32
  bool fp8 = false;             // bf16's layers multiply in fp8
  // Of a GPU that is cut into virtual devices (virtual_devices.hpp): how many, the multiprocessors
  // of each, and which of them.
  int parts = 1, multiprocessors = 0, part = 0;
};

// What the library offers.
struct CudaPlugin {
  CudaReport (*report)();
  // Throws std::runtime_error.
  std::unique_ptr<Device> (*make_device)(const GpuOptions& options);
  // "" where NCCL can be used, else a sentence that says why not.
  std::string (*nccl_missing)();
  FabricId (*make_fabric_id)();
  // Of a device of make_device's, which outlives it. All ranks call it; it throws RunFault where
  // one of them does not come, and std::runtime_error for what NCCL says.
  std::unique_ptr<Fabric> (*make_fabric)(Device& device, const FabricRequest& request);
};

// The library has one C function of this name, which takes the interface that the caller was
// compiled with and returns a const CudaPlugin*, or null for another interface.
inline constexpr const char* cuda_plugin_entry = "shardplan_cuda_plugin";
inline constexpr int cuda_plugin_interface = 5;
inline constexpr const char* cuda_plugin_file = "libshardplan-cuda.so";

// Loads it, from beside this program or from where it is installed. Throws RunFault, whose sentence
// says what is missing: the library, a library that it needs, a driver, or a GPU.
const CudaPlugin& cuda_plugin();

}  // namespace runtime
