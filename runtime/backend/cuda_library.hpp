// Loads libshardplan-cuda.so, the CUDA part of the program, with dlopen when a command needs it, so
// that everything else works without a GPU, a driver or CUDA's libraries.
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

// Version numbers as each library encodes them (CUDA 13.0 is 13000); 0: not installed.
struct CudaVersions {
  int driver = 0;  // the newest CUDA that the installed driver serves
  int runtime = 0;
  std::int64_t cublas = 0;
  int nccl = 0;
};

struct CudaReport {
  std::vector<Gpu> gpus;  // visible to this process
  CudaVersions versions;
  std::string error;  // one sentence when the GPUs could not be listed, else empty
};

// Why one of these GPUs has no fp8 matrix products (compute capability below 8.9), with a remedy;
// "" when all have them.
std::string fp8_missing(const std::vector<Gpu>& gpus);

struct GpuOptions {
  int index = 0;                // index into CudaReport::gpus
  Number number = Number::f32;  // of weights and activations
  bool tf32 = false;            // fp32 products round their operands to TF32
  bool fp8 = false;             // layers in bf16 compute their products in fp8
  // For a GPU split into virtual devices (virtual_devices.hpp): the number of parts, the
  // multiprocessors per part, and the index of this part.
  int parts = 1, multiprocessors = 0, part = 0;
};

// The functions that the library exports.
struct CudaPlugin {
  CudaReport (*report)();
  // Throws std::runtime_error.
  std::unique_ptr<Device> (*make_device)(const GpuOptions& options);
  // "" when NCCL can be used, else a sentence with the reason.
  std::string (*nccl_missing)();
  FabricId (*make_fabric_id)();
  // `device` comes from make_device and outlives the fabric. Collective: all ranks call it. Throws
  // RunFault when a rank does not arrive and std::runtime_error for an error of NCCL.
  std::unique_ptr<Fabric> (*make_fabric)(Device& device, const FabricRequest& request);
};

// The library's only C symbol. It takes the interface version the caller was compiled with and
// returns a const CudaPlugin*, or null for any other version.
inline constexpr const char* cuda_plugin_entry = "shardplan_cuda_plugin";
inline constexpr int cuda_plugin_interface = 5;
inline constexpr const char* cuda_plugin_file = "libshardplan-cuda.so";

// Loads the library from the program's own folder or from where it is installed. Throws RunFault,
// whose sentence names what is missing: the library, a library it depends on, a driver, or a GPU.
const CudaPlugin& cuda_plugin();

}  // namespace runtime
