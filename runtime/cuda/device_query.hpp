#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace runtime::cuda {

struct Device {
  std::string name;
  int compute_major = 0;  // compute capability, 9.0 on Hopper
  int compute_minor = 0;
  std::int64_t memory_bytes = 0;
  int multiprocessors = 0;
};

// Version numbers as each library encodes them (CUDA 13.0 is 13000); 0 where there is none.
struct Versions {
  int driver = 0;  // the newest CUDA that the installed driver serves
  int runtime = 0;
  std::int64_t cublas = 0;
  int nccl = 0;
  std::int64_t cudnn = 0;
};

struct DeviceReport {
  std::vector<Device> devices;
  Versions versions;
  std::string error;  // a sentence when the devices could not be listed, else empty
};

// The CUDA devices this process can see. Works, and says why there are none, on a machine without a
// driver.
DeviceReport query_devices();

}  // namespace runtime::cuda
