// Numbers that no machine has are questioned at their place, with what was meant.
#include "costmodel/machine/plausible.hpp"

#include <doctest/doctest.h>

#include "tests/costmodel/support/fixtures.hpp"
#include "tests/costmodel/support/scenarios.hpp"

namespace plausible_test {

using fixtures::contains;

namespace {

// The fault of a tier with these keys beside its name and size.
std::string fault_of_tier(const std::string& keys) {
  return fixtures::config_error([&] {
    scenarios::read(scenarios::tiny + "cluster: {base: laptop-cpu, tiers: [{name: a, devices: 8, " +
                    keys + "}]}\n");
  });
}

// The fault of a device where `keys` override the laptop's.
std::string fault_of_device(const std::string& keys) {
  return fixtures::config_error([&] {
    scenarios::read(scenarios::tiny + "cluster: {base: laptop-cpu, device: {base: cpu-generic, " +
                    keys + "}}\n");
  });
}

}  // namespace

TEST_CASE("a link, a start or a hop without its unit") {
  CHECK(fault_of_tier("bandwidth_bytes_per_s: 450, latency_s: 2 us") ==
        "test.yaml:3:82: bandwidth_bytes_per_s: 450 B/s is out of range; did you mean 450 GB/s? "
        "allowed: 1e+06 to 1e+14 B/s");
  CHECK(contains(fault_of_tier("bandwidth_bytes_per_s: 1 GB/s, latency_s: 0.5"),
                 "latency_s: 0.5 s is out of range; did you mean 0.5 us? allowed: 0 to 0.3 s"));
  CHECK(contains(fault_of_tier("bandwidth_bytes_per_s: 1 GB/s, latency_s: 0, fixed_s: 40"),
                 "did you mean 40 us?"));
  CHECK(contains(fault_of_tier("bandwidth_bytes_per_s: 450e3 GB/s, latency_s: 0"),
                 "bandwidth_bytes_per_s: 450e3 GB/s is out of range; allowed"));
}

TEST_CASE("a device without its units") {
  CHECK(contains(fault_of_device("memory: {bytes: 80}"),
                 "bytes: 80 B is out of range; did you mean 80 GiB? allowed: 1e+06 to 1e+16 B"));
  CHECK(contains(fault_of_device("memory: {bandwidth_bytes_per_s: 3350}"),
                 "did you mean 3350 GB/s?"));
  CHECK(contains(fault_of_device("peak_flops_per_s: {fp32: 67}"), "did you mean 67 TFLOP/s?"));
  CHECK(contains(fault_of_device("vector_flops_per_s: {value: 67}"), "did you mean 67 TFLOP/s?"));
  CHECK(contains(fault_of_device("launch: {kernel_s: 4.5}"), "did you mean 4.5 us?"));
}

TEST_CASE("the slowest and the fastest that was built is a machine") {
  const std::string slow = "bandwidth_bytes_per_s: 100 Mb/s, latency_s: 0.25",  // by satellite
      fast = "bandwidth_bytes_per_s: 1.8 TB/s, latency_s: 0";                   // NVLink 6
  CHECK(fault_of_tier(slow) == "");
  CHECK(fault_of_tier(fast) == "");
  CHECK(fault_of_device("memory: {bytes: 44 GB, bandwidth_bytes_per_s: 21000 TB/s}, "
                        "peak_flops_per_s: {fp32: 125 PFLOP/s}") == "");
  CHECK(fault_of_device("vector_flops_per_s: {value: 10 MFLOP/s}") == "");
}

}  // namespace plausible_test
