#include "calibrate/gpu_gauge.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace calibrate {

namespace {

constexpr int multiprocessor_clock = 1, memory_clock = 2;  // nvmlClockType_t

template <class Function>
void find(void* library, const char* name, Function& function, std::string& missing) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr && missing.empty()) missing = fmt::format("NVML has no {}", name);
}

}  // namespace

Nvml load_nvml(const char* file) {
  Nvml nvml;
  void* const library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const why = dlerror();
    nvml.missing = fmt::format("NVML cannot be loaded: {}", why == nullptr ? "no reason" : why);
    return nvml;
  }
  find(library, "nvmlInit_v2", nvml.init, nvml.missing);
  find(library, "nvmlShutdown", nvml.shut_down, nvml.missing);
  find(library, "nvmlDeviceGetHandleByPciBusId_v2", nvml.handle_by_bus, nvml.missing);
  find(library, "nvmlDeviceGetClockInfo", nvml.clock, nvml.missing);
  find(library, "nvmlDeviceGetPowerUsage", nvml.power, nvml.missing);
  find(library, "nvmlSystemGetDriverVersion", nvml.driver, nvml.missing);
  return nvml;
}

std::string range_text(std::vector<double> values) {
  if (values.empty()) return "unknown";
  std::ranges::sort(values);
  return fmt::format("{:.0f} ({:.0f} to {:.0f})", values[values.size() / 2], values.front(),
                     values.back());
}

class GpuGauge::Thread {
 public:
  Thread(const Nvml& nvml, const std::string& bus, costmodel::Seconds period)
      : nvml_(nvml), period_(period), missing_(opened(bus)) {
    if (missing_.empty()) thread_ = std::thread([this] { run(); });
  }
  ~Thread() { end(); }
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;

  void end() {
    if (!thread_.joinable()) return;
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
    thread_.join();
    nvml_.shut_down();
  }

  std::vector<std::pair<std::string, std::string>> told() const {
    if (!missing_.empty()) return {{"clocks_and_power", "unknown: " + missing_}};
    return {{"driver_version", driver_.empty() ? "unknown" : driver_},
            {"multiprocessor_mhz", range_text(multiprocessor_)},
            {"memory_mhz", range_text(memory_)},
            {"watts", range_text(watts_)}};
  }

 private:
  std::string opened(const std::string& bus) {
    if (!nvml_.missing.empty()) return nvml_.missing;
    if (const int status = nvml_.init(); status != 0)
      return fmt::format("NVML does not start (status {})", status);
    if (const int status = nvml_.handle_by_bus(bus.c_str(), &device_); status != 0) {
      nvml_.shut_down();
      return fmt::format("NVML knows no GPU at {} (status {})", bus, status);
    }
    std::array<char, 96> text{};
    if (nvml_.driver(text.data(), static_cast<unsigned>(text.size() - 1)) == 0)
      driver_ = text.data();
    return "";
  }

  void read(std::vector<double>& into, int status, double value) {
    if (status == 0) into.push_back(value);
  }

  void run() {
    std::unique_lock lock(mutex_);
    do {
      unsigned value = 0;
      int status = nvml_.clock(device_, multiprocessor_clock, &value);
      read(multiprocessor_, status, value);
      status = nvml_.clock(device_, memory_clock, &value);
      read(memory_, status, value);
      status = nvml_.power(device_, &value);
      read(watts_, status, value * 1e-3);
    } while (!changed_.wait_for(lock, std::chrono::duration<double>(period_.value),
                                [&] { return ended_; }));
  }

  const Nvml nvml_;
  const costmodel::Seconds period_;
  void* device_ = nullptr;
  std::string driver_;
  const std::string missing_;  // behind what opened() writes
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;
  std::vector<double> multiprocessor_, memory_, watts_;
  std::thread thread_;
};

GpuGauge::GpuGauge(const Nvml& nvml, const std::string& bus, costmodel::Seconds period)
    : thread_(std::make_unique<Thread>(nvml, bus, period)) {}

GpuGauge::~GpuGauge() = default;

std::vector<std::pair<std::string, std::string>> GpuGauge::stop() {
  thread_->end();
  return thread_->told();
}

}  // namespace calibrate
