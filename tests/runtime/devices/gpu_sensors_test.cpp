// Clocks and power, of a GPU that only says what it is told to.
#include "runtime/devices/gpu_sensors.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <thread>

namespace gpu_sensors_test {

using runtime::GpuGauge;
using runtime::Nvml;

namespace {

std::atomic<int> open_count = 0, readings = 0;

Nvml fake() {
  return {.init = [] { return ++open_count, 0; },
          .shut_down = [] { return --open_count, 0; },
          .handle_by_bus =
              [](const char* bus, void** device) {
                *device = &open_count;
                return std::strcmp(bus, "0000:1b:00.0") == 0 ? 0 : 6;
              },
          .clock =
              [](void*, int kind, unsigned* megahertz) {
                ++readings;
                *megahertz = kind == 1 ? 1000U + static_cast<unsigned>(readings.load()) : 3201U;
                return 0;
              },
          .power = [](void*, unsigned*) { return 3; },  // not supported
          .memory =
              [](void*, runtime::NvmlMemory* memory) {
                *memory = {80ULL << 30U, 70ULL << 30U, 10ULL << 30U};
                return 0;
              },
          .driver =
              [](char* text, unsigned size) {
                std::strncpy(text, "580.1", size);
                return 0;
              },
          .missing = ""};
}

std::map<std::string, std::string> told_by(GpuGauge& gauge) {
  std::map<std::string, std::string> told;
  for (const auto& [name, value] : gauge.stop()) told[name] = value;
  return told;
}

}  // namespace

TEST_CASE("what was read is told as its median and its bounds") {
  CHECK(runtime::range_text({}) == "unknown");
  CHECK(runtime::range_text({1410, 1980, 1980.4}) == "1980 (1410 to 1980)");
  CHECK(runtime::range_text({2619, 2619}) == "2619");
}

TEST_CASE("a gauge reads until it is stopped, and says what it could not read") {
  readings = 0;
  GpuGauge gauge(fake(), "0000:1b:00.0", costmodel::Seconds(0.001));
  while (readings < 20) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  CHECK(open_count == 1);
  const auto told = told_by(gauge);
  CHECK(open_count == 0);
  CHECK(told.at("driver_version") == "580.1");
  CHECK(told.at("memory_mhz") == "3201");
  CHECK(told.at("multiprocessor_mhz").find("(1001 to ") != std::string::npos);
  CHECK(told.at("watts") == "unknown");
  const int before = readings;
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  CHECK(readings == before);
}

TEST_CASE("a gauge that restarts forgets what it read before, and reads once more at least") {
  readings = 0;
  GpuGauge gauge(fake(), "0000:1b:00.0", costmodel::Seconds(1000));
  while (readings < 2) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  readings = 500;
  gauge.restart();
  CHECK(gauge.stop_and_tell() ==
        "clocks while it ran: multiprocessors 1501 MHz, memory 3201 MHz, unknown W; driver 580.1; "
        "70.0 of 80.0 GiB free before");
  CHECK(readings == 502);
  CHECK(open_count == 0);
}

TEST_CASE("without NVML, or that GPU, a profile says so") {
  GpuGauge elsewhere(fake(), "0000:ff:00.0", costmodel::Seconds(0.001));
  CHECK(told_by(elsewhere).at("clocks_and_power") ==
        "unknown: NVML knows no GPU at 0000:ff:00.0 (status 6)");
  CHECK(open_count == 0);
  const Nvml missing = runtime::load_nvml("libno-such-nvml.so");
  CHECK(missing.missing.starts_with("NVML cannot be loaded: libno-such-nvml.so"));
  CHECK(runtime::load_nvml("libm.so.6").missing == "NVML has no nvmlInit_v2");
  GpuGauge gauge(missing, "", costmodel::Seconds(0.001));
  CHECK(told_by(gauge).at("clocks_and_power") == "unknown: " + missing.missing);
  CHECK(gauge.stop_and_tell() == "clocks, power and free memory are unknown: " + missing.missing);
}

}  // namespace gpu_sensors_test
