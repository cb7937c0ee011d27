// The machines: a device with its rates, and the tiers of network that join devices, from the
// innermost out.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "costmodel/base/precision.hpp"
#include "costmodel/base/units.hpp"
#include "costmodel/machine/collective_table.hpp"
#include "costmodel/machine/rate_table.hpp"

namespace costmodel {

struct DeviceSpec {
  std::string name;
  std::string title;
  std::array<FlopsPerSecond, precision_count>
      peak{};                  // dense matrix products; 0 where the device has no such unit
  FlopsPerSecond vector_peak;  // element-wise arithmetic
  int multiprocessors = 1;
  Bytes memory;
  BytesPerSecond memory_bandwidth;
  double gemm_efficiency = 0.8;  // of peak, for products that fill the device
  std::array<double, precision_count>
      gemm_precision_efficiency{};  // the same of one precision where it differs; 0:
                                    // gemm_efficiency
  double gemm_half_k = 0;           // inner size at which half of it is reached
  Seconds gemm_start;               // fill and drain of a product's pipeline, and the gap before it
  double attention_forward = 0.6;   // of peak, flash attention
  double attention_backward = 0.5;
  double attention2_forward =
      0.6;  // the same of FlashAttention 2; equal where nothing better exists
  double attention2_backward = 0.5;
  double attention_half_sequence =
      0;  // causal kernels on s tokens reach s / (s + this) of it: masked tiles, start and tail
  double attention_half_blocks =
      0;  // ... and blocks of 128 queries reach n / (n + this): occupancy
  double attention_half_head_dim =
      0;  // ... and heads of d reach d / (d + this): softmax beside products
  double memory_efficiency = 0.8;  // of bandwidth, large element-wise kernels
  Bytes memory_half;  // a kernel moving x bytes takes (x + memory_half) / (bandwidth · efficiency)
  BytesPerSecond host_bandwidth;  // to host memory, one direction; 0: not said
  double idle_boost = 0;  // a device idle for a share f of the time computes 1 - f · this as long
                          // in the rest: under its power limit it clocks higher
  Seconds kernel_launch;  // host time a kernel; back-to-back kernels are never faster
  Seconds graph_kernel_launch;      // ... replayed from a graph; 0: not said
  std::vector<RateTable> measured;  // operators as measured, instead of the formulas
  // So many devices of a node that compute at once take so many times as long each as one alone at
  // its best: they share caches, memory or cores, and one alone may have neighbours that nobody
  // here knows. Growing; empty: they share nothing.
  struct Together {
    double devices, slowdown;
    double pace = 0;  // ... of which a core's pace just then explains this much (0: not said)
  };
  std::vector<Together> together;
  Seconds yardstick;  // of runtime/devices/yardstick.hpp at the pace of `measured`; 0: not said
  FlopsPerSecond peak_of(Precision p) const { return peak[static_cast<std::size_t>(p)]; }
  double gemm_efficiency_of(Precision p) const {
    const double own = gemm_precision_efficiency[static_cast<std::size_t>(p)];
    return own > 0 ? own : gemm_efficiency;
  }
};

// A level of the network. A unit of tier i is a group of `devices` devices joined at tier i or
// below.
struct Tier {
  std::string name;
  std::int64_t devices = 0;
  BytesPerSecond bandwidth;  // per device, one direction
  Seconds latency;           // one hop
  Seconds fixed;             // start of any collective that reaches this tier
  double efficiency = 1;     // of the bandwidth, large messages
  // Of one device while its neighbours are silent; 0: no more than `bandwidth`.
  BytesPerSecond single;
  std::vector<CollectiveTable> measured;  // within this tier, instead of the formulas
  // What a device reaches in a group of so many of its unit, where a smaller group has fewer of the
  // links (NVLink without a switch: a pair has only those between the two). Growing.
  struct Group {
    int devices;
    BytesPerSecond bandwidth;
  };
  std::vector<Group> groups;
  // Of large messages in a group of `size` within a unit: the largest of `groups` that is not
  // larger than it; all of the tier's beyond them.
  BytesPerSecond reached(int size) const;
};

struct ClusterSpec {
  std::string name;
  std::string title;
  DeviceSpec device;
  std::int64_t devices = 0;
  std::int64_t devices_per_node = 0;
  double straggler_per_doubling =
      0;                    // an iteration is this share longer with each doubling of nodes
  Seconds launch_blocked;   // idle time after each kernel where jobs set CUDA_LAUNCH_BLOCKING: the
                            // host launches the next when it has seen the last one end
  std::vector<Tier> tiers;  // strictly growing `devices`; the last holds the whole cluster
  std::vector<Tier> known_tiers;  // as described, before they were fitted to `devices`
  std::vector<std::string> assumed;
  // Where devices differ: each kind's own, as a cluster of its own, and `tiers` above is the one
  // that joins them. `device` and `devices_per_node` above are those of the first. Empty: one kind.
  std::vector<ClusterSpec> groups;
};

// How much longer than one node's an iteration is because every collective waits for the slowest
// node: 1 + straggler_per_doubling · log2(nodes).
double straggler_factor(const ClusterSpec& cluster);

// How many times as long as alone at its best a device computes while `devices` of its node do: 1
// for one, where nothing else was measured; linear between the measured numbers, proportional above
// the last, where devices take turns.
double slowdown_together(const DeviceSpec& device, double devices);

// The same device while its cores take `pace` times as long as at the pace of `measured`, turns
// that they have to take counted: what they share beside that stays. Unchanged where Together::pace
// is not said.
DeviceSpec at_pace(DeviceSpec device, double pace);

// Cuts or stretches the tiers to `devices` and `devices_per_node`, and says so in `assumed`.
void fit_tiers(ClusterSpec& cluster);

// The same cluster with another number of devices: its tiers as described, cut or stretched again.
ClusterSpec resized(const ClusterSpec& cluster, std::int64_t devices);

// What all devices of a cluster compute in a second, and the names of its kinds of devices.
FlopsPerSecond peak_of(const ClusterSpec& cluster, Precision precision);

}  // namespace costmodel
