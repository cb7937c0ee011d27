// Synthetic measurements from known constants, with reproducible noise or outliers.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "calibrate/fit/microbenchmark.hpp"
#include "costmodel/machine/cluster_spec.hpp"

namespace synthetic {

using calibrate::Measurement;
using costmodel::Bytes;
using costmodel::Seconds;

inline costmodel::DeviceSpec device() {
  costmodel::DeviceSpec d;
  d.peak.fill(costmodel::FlopsPerSecond(312e12));
  d.multiprocessors = 108;
  d.memory_bandwidth = costmodel::BytesPerSecond(2e12);
  d.gemm_efficiency = 0.8;
  d.gemm_half_k = 200;
  d.attention_forward = d.attention2_forward = 0.6;
  d.attention_backward = d.attention2_backward = 0.5;
  d.attention_half_sequence = 490;
  d.memory_efficiency = 0.8;
  d.memory_half = Bytes(2e6);
  return d;
}

inline costmodel::ClusterSpec cluster() {
  costmodel::ClusterSpec c;
  c.devices = 64;
  c.devices_per_node = 8;
  c.tiers = {
      {"nvlink", 8, costmodel::BytesPerSecond(300e9), Seconds(1.5e-6), Seconds(45e-6), 0.8},
      {"infiniband", 64, costmodel::BytesPerSecond(25e9), Seconds(5e-6), Seconds(40e-6), 0.9}};
  c.known_tiers = c.tiers;
  return c;
}

template <class What>
Measurement point(const What& what, Seconds time) {
  return {"made up", "device", what, time, "made up", "2026-01-02"};
}

// Every tenth point is off by a factor of 3, slow ones twice as often as fast ones.
inline std::vector<Measurement> with_outliers(std::vector<Measurement> points) {
  for (std::size_t i = 3; i < points.size(); i += 10) points[i].time *= i % 3 == 0 ? 1.0 / 3 : 3;
  return points;
}

}  // namespace synthetic
