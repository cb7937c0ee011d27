// Clocks and power of a GPU while it is measured, by NVIDIA's management library, which comes with
// the driver and is loaded when it is asked for. Nothing is set.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "costmodel/base/units.hpp"

namespace calibrate {

// NVML's functions, of its public ABI. Each returns 0 when it succeeds.
struct Nvml {
  int (*init)() = nullptr;
  int (*shut_down)() = nullptr;
  int (*handle_by_bus)(const char* bus, void** device) = nullptr;
  int (*clock)(void* device, int kind, unsigned* megahertz) = nullptr;
  int (*power)(void* device, unsigned* milliwatts) = nullptr;
  int (*driver)(char* text, unsigned size) = nullptr;
  std::string missing;  // a sentence where it cannot be used; then the functions are null
};
Nvml load_nvml(const char* file = "libnvidia-ml.so.1");

// The median, the least and the most of what was read: "1980 (1410 to 1980)". "unknown" of none.
std::string range_text(std::vector<double> values);

class GpuGauge {
 public:
  // Reads the GPU at a bus every `period` on a thread of its own until stop().
  GpuGauge(const Nvml& nvml, const std::string& bus, costmodel::Seconds period);
  ~GpuGauge();
  GpuGauge(const GpuGauge&) = delete;
  GpuGauge& operator=(const GpuGauge&) = delete;

  // What a profile says: the driver's version, clocks and power, or why they are unknown.
  std::vector<std::pair<std::string, std::string>> stop();

 private:
  class Thread;
  std::unique_ptr<Thread> thread_;
};

}  // namespace calibrate
