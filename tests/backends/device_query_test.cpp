#include "runtime/cuda/device_query.hpp"

#include <doctest/doctest.h>

#include "runtime/cuda/triad.hpp"

namespace device_query_test {

using namespace runtime;
using namespace runtime::cuda;

TEST_CASE("libraries answer for their versions with or without a GPU") {
  const CudaVersions versions = query_devices().versions;
  CHECK(versions.runtime >= 12000);
  CHECK(versions.cublas > 0);
}

TEST_CASE("the machine has devices, or a sentence says why not") {
  const CudaReport report = query_devices();
  CHECK(report.gpus.empty() == !report.error.empty());
  for (const Gpu& device : report.gpus) {
    CHECK_FALSE(device.name.empty());
    CHECK(device.compute_major >= 5);
    CHECK(device.memory_bytes > 0);
    CHECK(device.multiprocessors > 0);
  }
  if (report.versions.driver == 0) CHECK(report.error == "no CUDA driver on this machine");
}

TEST_CASE("a triad on the device equals one on the host to the last bit") {
  std::vector<float> b(1000);
  std::vector<float> c(1000);
  for (std::size_t i = 0; i < b.size(); ++i) {
    b[i] = 0.1F * static_cast<float>(i);
    c[i] = 1.0F / static_cast<float>(i + 1);
  }
  const TriadResult result = triad_on_device(b, c, 3.7F);
  const CudaReport report = query_devices();
  if (report.gpus.empty()) {
    MESSAGE("skipped: no device");
    CHECK(result.error == report.error);
    return;
  }
  REQUIRE(result.error == "");
  CHECK(result.a == triad_on_host(b, c, 3.7F));
}

TEST_CASE("a triad of unequal lengths is refused") {
  CHECK(triad_on_device({1.0F}, {}, 1.0F).error == "the two inputs of a triad differ in length");
}

}  // namespace device_query_test
