// Reads the clocks, the power and the free memory of a GPU while it is measured, through NVIDIA's
// management library (NVML), which comes with the driver and is loaded on first use. Changes no
// settings. From Ampere on, but not on the A100, power is the mean of the last second (NVML's
// reference, nvmlDeviceGetPowerUsage).
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "costmodel/base/units.hpp"

namespace runtime {

struct NvmlMemory {  // nvmlMemory_t, bytes
  unsigned long long total = 0, free = 0, used = 0;
};

// NVML's functions, by its public ABI. Each returns 0 on success.
struct Nvml {
  int (*init)() = nullptr;
  int (*shut_down)() = nullptr;
  int (*handle_by_bus)(const char* bus, void** device) = nullptr;
  int (*clock)(void* device, int kind, unsigned* megahertz) = nullptr;
  int (*power)(void* device, unsigned* milliwatts) = nullptr;
  int (*memory)(void* device, NvmlMemory* memory) = nullptr;
  int (*driver)(char* text, unsigned size) = nullptr;
  std::string missing;  // a sentence when it cannot be used; then the functions are null
};
Nvml load_nvml(const char* file = "libnvidia-ml.so.1");

// Median, minimum and maximum of the samples: "1980 (1410 to 1980)", "2619" when all are equal;
// "unknown" without samples.
std::string range_text(std::vector<double> values);

class GpuGauge {
 public:
  // Reads the free memory of the GPU at PCI address `bus`, then samples clocks and power every
  // `period` seconds on a thread until stop().
  GpuGauge(const Nvml& nvml, const std::string& bus, costmodel::Seconds period);
  ~GpuGauge();
  GpuGauge(const GpuGauge&) = delete;
  GpuGauge& operator=(const GpuGauge&) = delete;

  // Forgets the samples so far, such as those of a warm-up, and takes one at once.
  void restart();
  // Entries for a profile: the driver's version, clocks and power, or why they are unknown.
  std::vector<std::pair<std::string, std::string>> stop();
  // Stops, and tells the same and the memory that was free at first in one line.
  std::string stop_and_tell();

 private:
  class Thread;
  std::unique_ptr<Thread> thread_;
};

}  // namespace runtime
