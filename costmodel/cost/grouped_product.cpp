#include "costmodel/cost/grouped_product.hpp"

#include <algorithm>
#include <cmath>

namespace costmodel {

namespace {

constexpr double cluster = 2;  // multiprocessors

// `ends`: what a cluster takes for a tile beyond its products, to fill its stages and to write the
// result. Two tiles of the smaller kind overlap in a multiprocessor.
struct GroupTile {
  double rows, columns;
  Seconds ends;
};

// Both `ends`: 126 timings on an H100 and an H200 (configs/kernels/pytorch-operators.csv, and a
// run of the day before), with the product's own efficiency of the device.
GroupTile group_tile(double rows, double columns) {
  const bool small = rows <= 128 || columns <= 128;
  return small ? GroupTile{64, 128, Seconds(0.3e-6)} : GroupTile{128, 256, Seconds(2.3e-6)};
}

}  // namespace

Seconds grouped_product_time(double groups, double rows, double columns, double k,
                             const DeviceSpec& device, Precision precision) {
  constexpr double width = 2;  // bytes of an element
  const GroupTile tile = group_tile(rows, columns);
  const double down = std::ceil(rows / (cluster * tile.rows)),
               across = std::ceil(columns / tile.columns),
               resident = std::max(1.0, std::floor(device.multiprocessors / cluster)),
               waves = std::ceil(groups * down * across / resident);
  // A tile by arithmetic, and by what the second-level cache gives all multiprocessors: each reads
  // its rows, and half of the columns, which the cluster shares.
  const FlopsPerSecond rate(device.peak_of(precision).value * device.gemm_efficiency_of(precision) /
                            device.multiprocessors);
  const Seconds arithmetic = Flops(2 * tile.rows * tile.columns * k) / rate;
  const Seconds cache =
      Bytes((tile.rows + tile.columns / cluster) * k * width * device.multiprocessors) /
      device.cache_bandwidth;
  const Seconds computing = (max(arithmetic, cache) + tile.ends) * waves;
  // The rows of a group that the cache does not hold are read again for each of its passes over
  // them.
  const bool held = rows * k * width <= device.cache.value;
  const double passes = held ? 1 : std::max(1.0, across / std::max(1.0, resident / down));
  const Bytes moved(groups * width * (rows * k * passes + columns * k + rows * columns));
  const Seconds memory =
      moved / BytesPerSecond(device.memory_bandwidth.value * device.memory_efficiency);
  // Neither hides the other wholly: the fourth root of their fourth powers' sum.
  const Seconds longer = max(computing, memory);
  const double part = std::min(computing, memory) / longer;
  constexpr double preparing = 2;  // kernels: the groups' addresses and sizes are one of their own
  return device.gemm_start * preparing +
         longer * std::sqrt(std::sqrt(1 + part * part * part * part));
}

}  // namespace costmodel
