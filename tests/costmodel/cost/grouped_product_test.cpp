// PyTorch's grouped product: its tiles and waves by hand, and against what was timed.
#include "costmodel/cost/grouped_product.hpp"

#include <doctest/doctest.h>

#include "costmodel/config/search_path.hpp"
#include "costmodel/config/yaml.hpp"
#include "costmodel/cost/device_time.hpp"
#include "costmodel/machine/device_reader.hpp"
#include "tests/costmodel/support/fixtures.hpp"

namespace grouped_product_test {

using namespace costmodel;

namespace {

// 132 multiprocessors of 1e12 FLOP/s, and memory and cache that nothing waits for.
DeviceSpec plain() {
  DeviceSpec device;
  device.peak[static_cast<std::size_t>(Precision::bf16)] = FlopsPerSecond(132e12);
  device.multiprocessors = 132;
  device.gemm_efficiency = device.memory_efficiency = 1;
  device.memory_bandwidth = device.cache_bandwidth = BytesPerSecond(1e18);
  device.cache = Bytes(50e6);
  return device;
}

double time(double groups, double rows, double columns, double k, const DeviceSpec& device) {
  return grouped_product_time(groups, rows, columns, k, device, Precision::bf16).value;
}

}  // namespace

TEST_CASE("a grouped product takes its waves of tiles") {
  const DeviceSpec device = plain();
  // 66 clusters take a tile of 256 x 256 each; a 67th begins another wave.
  const double wave = 2 * 128 * 256 * 1e6 / 1e12 + 2.3e-6;
  CHECK(time(66, 256, 256, 1e6, device) == doctest::Approx(wave));
  CHECK(time(67, 256, 256, 1e6, device) == doctest::Approx(2 * wave));
  // What a tile does not fill it computes nevertheless.
  CHECK(time(66, 129, 129, 1e6, device) == doctest::Approx(wave));
  // Groups of 128 rows or columns have tiles of 64 x 128, two of which lie below one another.
  const double small = 2 * 64 * 128 * 1e6 / 1e12 + 0.3e-6;
  CHECK(time(66, 128, 128, 1e6, device) == doctest::Approx(small));
  CHECK(time(66, 256, 128, 1e6, device) == doctest::Approx(2 * small));
}

TEST_CASE("a grouped product waits for its memory and for the cache") {
  DeviceSpec device = plain();
  device.memory_bandwidth = BytesPerSecond(1e9);
  const double rows = 1024, columns = 512, k = 1024;
  const double once = 2 * (rows * k + columns * k + rows * columns) / 1e9;
  CHECK(time(1, rows, columns, k, device) == doctest::Approx(once).epsilon(1e-6));
  // Rows that the cache holds no more are read for each of 32 passes of 66 tiles over them.
  const double many = 66 * 256.0, wide = 32 * 256.0;
  device.cache = Bytes(0);
  const double again = 2 * (32 * many * k + wide * k + many * wide) / 1e9;
  CHECK(time(1, many, wide, k, device) == doctest::Approx(again).epsilon(1e-6));
  // All multiprocessors read their tile's rows, and half of its columns.
  device = plain();
  device.cache_bandwidth = BytesPerSecond(1e9);
  CHECK(time(1, 256, 256, 1e5, device) ==
        doctest::Approx(132 * 1e5 * 2 * (128 + 128) / 1e9 + 2.3e-6));
}

TEST_CASE("operands of 8 bits, and devices whose cache is unknown, have the general formula") {
  const ResolvedConfig found =
      resolve_config(fixtures::configs(), "devices", scalar_value("h100-sxm5-80gb"));
  DeviceSpec device = read_device(found.value, found.name);
  GroupedLinear op{32768, 1024, 2048, 64, false, Seconds(0), false};
  const auto times = [&](Precision precision) {
    return device_time(op, Pass::forward, device, precision);
  };
  const Seconds general = times(Precision::bf16), narrow = times(Precision::fp8);
  op.grouped_mm = true;
  CHECK(times(Precision::bf16) != general);
  CHECK(times(Precision::fp8) == narrow);
  device.cache_bandwidth = {};
  CHECK(times(Precision::bf16) == general);
}

}  // namespace grouped_product_test
