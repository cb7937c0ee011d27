#include "runtime/devices/gpu_sensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "costmodel/base/unit_text.hpp"
#include "runtime/backend/loaded_library.hpp"

namespace runtime {

using namespace costmodel;

namespace {

constexpr int multiprocessor_clock = 1, memory_clock = 2;  // nvmlClockType_t

}  // namespace

Nvml load_nvml(const char* file) {
  LoadedLibrary library("NVML", file);
  Nvml nvml;
  library.find("nvmlInit_v2", nvml.init);
  library.find("nvmlShutdown", nvml.shut_down);
  library.find("nvmlDeviceGetHandleByPciBusId_v2", nvml.handle_by_bus);
  library.find("nvmlDeviceGetClockInfo", nvml.clock);
  library.find("nvmlDeviceGetPowerUsage", nvml.power);
  library.find("nvmlDeviceGetMemoryInfo", nvml.memory);
  library.find("nvmlSystemGetDriverVersion", nvml.driver);
  nvml.missing = library.missing();
  return nvml;
}

std::string range_text(std::vector<double> values) {
  if (values.empty()) return "unknown";
  std::ranges::sort(values);
  const auto text = [](double value) { return fmt::format("{:.0f}", value); };
  std::string least = text(values.front());
  const std::string most = text(values.back());
  if (least == most) return least;
  return fmt::format("{} ({} to {})", text(values[values.size() / 2]), least, most);
}

class GpuGauge::Thread {
 public:
  Thread(const Nvml& nvml, const std::string& bus, Seconds period)
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

  void restart() {
    {
      const std::lock_guard lock(mutex_);
      multiprocessor_.clear();
      memory_.clear();
      watts_.clear();
      restarted_ = true;
    }
    changed_.notify_all();
  }

  std::string line() const {
    if (!missing_.empty()) return "clocks, power and free memory are unknown: " + missing_;
    return fmt::format(
        "clocks while it ran: multiprocessors {} MHz, memory {} MHz, {} W; driver {}; {}",
        range_text(multiprocessor_), range_text(memory_), range_text(watts_), driver_, free_);
  }

  std::vector<std::pair<std::string, std::string>> told() const {
    if (!missing_.empty()) return {{"clocks_and_power", "unknown: " + missing_}};
    return {{"driver_version", driver_},
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
    NvmlMemory memory;
    if (nvml_.memory(device_, &memory) == 0)
      free_ = fmt::format("{} of {} GiB free before", gib(memory.free), gib(memory.total));
    return "";
  }

  static std::string gib(unsigned long long bytes) {
    return format_gib(costmodel::Bytes(static_cast<double>(bytes)));
  }

  void read(std::vector<double>& into, int status, double value) {
    if (status == 0) into.push_back(value);
  }

  void run() {
    std::unique_lock lock(mutex_);
    do {
      restarted_ = false;
      unsigned value = 0;
      int status = nvml_.clock(device_, multiprocessor_clock, &value);
      read(multiprocessor_, status, value);
      status = nvml_.clock(device_, memory_clock, &value);
      read(memory_, status, value);
      status = nvml_.power(device_, &value);
      read(watts_, status, value * 1e-3);
      changed_.wait_for(lock, std::chrono::duration<double>(period_.value),
                        [&] { return ended_ || restarted_; });
    } while (!ended_ || restarted_);
  }

  const Nvml nvml_;
  const Seconds period_;
  void* device_ = nullptr;
  std::string driver_ = "unknown", free_ = "free memory unknown";
  const std::string missing_;  // declared after what opened() writes
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false, restarted_ = false;
  std::vector<double> multiprocessor_, memory_, watts_;
  std::thread thread_;
};

GpuGauge::GpuGauge(const Nvml& nvml, const std::string& bus, Seconds period)
    : thread_(std::make_unique<Thread>(nvml, bus, period)) {}

GpuGauge::~GpuGauge() = default;

void GpuGauge::restart() { thread_->restart(); }

std::string GpuGauge::stop_and_tell() {
  thread_->end();
  return thread_->line();
}

std::vector<std::pair<std::string, std::string>> GpuGauge::stop() {
  thread_->end();
  return thread_->told();
}

}  // namespace runtime
