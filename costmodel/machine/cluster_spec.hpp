// The machines: a device with its rates, and the tiers of the network that connects devices,
// innermost first.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "costmodel/base/precision.hpp"
#include "costmodel/base/units.hpp"
#include "costmodel/machine/collective_table.hpp"
#include "costmodel/machine/rate_table.hpp"
#include "costmodel/machine/traced_run.hpp"

namespace costmodel {

// How many times as much of a device's rates as is written of it, which is what published runs of
// full nodes sustain, single kernels reach on a device whose node has no other at work.
struct RatesAlone {
  double gemm_efficiency = 1, gemm_half_k = 1, gemm_start = 1, memory_efficiency = 1;
};

struct DeviceSpec {
  std::string name;
  std::string title;
  std::array<FlopsPerSecond, precision_count>
      peak{};                  // dense matrix products; 0 without such a unit
  FlopsPerSecond vector_peak;  // element-wise arithmetic
  int multiprocessors = 1;
  Bytes memory;
  BytesPerSecond memory_bandwidth;
  // What PyTorch allocates for cuBLAS, a handle and stream: twice 4 MiB and 16 times 8 KiB, before
  // Hopper (aten/src/ATen/cuda/CublasHandlePool.cpp, parseChosenWorkspaceSize).
  Bytes workspace{8320.0 * 1024};
  Bytes cache;                     // of the second level, which all multiprocessors share
  BytesPerSecond cache_bandwidth;  // what they read of it together; 0: unknown
  double gemm_efficiency = 0.8;    // fraction of peak, for products that fill the device
  std::array<double, precision_count>
      gemm_precision_efficiency{};  // per precision; 0: gemm_efficiency
  double gemm_half_k = 0;      // inner size k at which a product reaches half of its efficiency
  double gemm_tile_rows = 16;  // a library's product of fewer rows takes as long as one of these
  double narrow_group_gradient = 1;  // rate of the weight gradients of products in groups, with
                                     // operands below 16 bits, relative to their forward
  Seconds gemm_start;                // per product: pipeline fill and drain, and the gap before it
  double attention_forward = 0.6;    // fraction of peak, flash attention
  double attention_backward = 0.5;
  double attention2_forward =
      0.6;  // for FlashAttention 2; equal to the above where no better kernel exists
  double attention2_backward = 0.5;
  // FlashAttention 2 and cuDNN's attention, by what rows of so many keys and heads of so many
  // columns reach.
  std::vector<RateTable> attention2_measured, cudnn_measured;
  // Of the peak, what FlashAttention 2 sustains at most within an iteration, under the power limit:
  // kernels alone, after a rest, are above it.
  double attention2_sustained_forward = 1, attention2_sustained_backward = 1;
  double attention_half_sequence =
      0;  // causal kernels on s tokens reach s / (s + this) of it: masked tiles, start and tail
  double attention_half_blocks = 0;  // with n blocks of 128 queries, n / (n + this): occupancy
  double attention_half_head_dim =
      0;  // with heads of size d, d / (d + this): softmax next to the products
  // How much faster attention is with fp8 operands than with 16-bit ones, for heads of 128 and of
  // 192; 1: unknown.
  std::array<double, 2> narrow_attention_forward{1, 1}, narrow_attention_backward{1, 1};
  double memory_efficiency = 0.8;  // fraction of bandwidth, large element-wise kernels
  Bytes memory_half;  // a kernel moving x bytes takes (x + memory_half) / (bandwidth · efficiency)
  BytesPerSecond host_bandwidth;  // to host memory, one direction; 0: unknown
  double idle_boost = 0;  // a device that is idle for a fraction f of the time takes only 1 - f ·
                          // this of its time for the rest: its clock rises under the power limit
  double watts = 0;       // power limit of the device; 0: unknown
  Seconds kernel_launch;  // host time per kernel; back-to-back kernels are never faster
  Seconds graph_kernel_launch;  // the same when replayed from a CUDA graph; 0: unknown
  Seconds host_call;  // host time per call of a module or operator from Python; 0: unknown
  bool flex_dispatcher = false;     // kernels of DeepEP and HybridEP run on it
  std::vector<RateTable> measured;  // measured operators, used in place of the formulas
  std::string left_out;             // what of its file does not count, and why; empty: nothing
  // When `devices` devices of a node compute concurrently, each takes `slowdown` times as long as a
  // single one in the best case: they share caches, memory bandwidth or cores, and a single one may
  // have unknown neighbours. Ascending; empty: no slowdown.
  struct Together {
    double devices, slowdown;
    double pace = 0;  // the part of `slowdown` that the cores' pace explained during the
                      // measurement; 0: unknown
  };
  std::vector<Together> together;
  std::optional<RatesAlone> alone;
  bool is_alone = false;  // whether the rates above are those of a device alone
  // By KernelKind: the time of kernels over that of the formulas, as traces of one's own runs have
  // it (traced_run.hpp).
  std::array<double, kernel_kind_count> kind_factor{1, 1, 1, 1, 1, 1, 1, 1};
  Seconds yardstick;  // time of runtime/devices/yardstick.hpp at the pace of `measured`; 0: unknown
  // Linear between heads of 128 and 192, constant beyond.
  double narrow_attention_speedup(double head_dim, bool forward) const;
  FlopsPerSecond peak_of(Precision p) const { return peak[static_cast<std::size_t>(p)]; }
  double gemm_efficiency_of(Precision p) const {
    const double own = gemm_precision_efficiency[static_cast<std::size_t>(p)];
    return own > 0 ? own : gemm_efficiency;
  }
};

// One level of the network. A unit of tier i is a set of `devices` devices connected at tier i or
// below.
struct Tier {
  std::string name;
  std::int64_t devices = 0;
  BytesPerSecond bandwidth;  // per device, one direction
  Seconds latency;           // one hop
  Seconds fixed;             // start-up time of any collective that reaches this tier
  double efficiency = 1;     // fraction of the bandwidth, large messages
  // Bandwidth of one device while its neighbours are idle; 0: not above `bandwidth`.
  BytesPerSecond single;
  std::vector<CollectiveTable> measured;  // replace the formulas within this tier
  // Bandwidth per device in a group of `devices` devices of a unit, where a smaller group uses
  // fewer of the links (NVLink without a switch: a pair uses only the links between the two).
  // Ascending.
  struct Group {
    int devices;
    BytesPerSecond bandwidth;
  };
  std::vector<Group> groups;
  // Bandwidth of large messages in a group of `size` devices within a unit: that of the largest
  // entry of `groups` not above `size`, and the tier's own beyond the entries.
  BytesPerSecond reached(int size) const;
};

// The NVMe drives of a node, all together. 0: unknown.
struct DriveSpec {
  Bytes size;
  BytesPerSecond read, write;
};

// What a run on a cluster costs, and what interrupts it. 0, or empty: unknown.
struct Operation {
  double usd_per_device_hour = 0;
  std::string price_date;               // when that was the price
  double watts_per_device = 0;          // its share of a node at full load, all parts of the node
  double device_hours_per_failure = 0;  // of failures that stop a job: all devices' hours over them
  Seconds restart;         // from a failure until training goes on, less reading the checkpoint
  BytesPerSecond storage;  // a device's share while all write, and while all read, a checkpoint
};

// What a user's own runs on a cluster say of the predictions for it, written by `shardplan
// calibrate --from-log` and `--from-trace`. It holds for one stack.
struct OwnRuns {
  int runs = 0;  // 0: none
  std::string stack;
  double time_factor = 1;    // on an iteration's time
  double low = 1, high = 1;  // 5th and 95th percentile of measured / predicted, with that factor
  std::vector<TracedRun> traces = {};
  TracedShape shape = {};      // of the scenario that they are applied to
  Seconds kernel_launch = {};  // host time per kernel, in place of the stack's; 0: the stack's
};

// Most tiers of a cluster.
inline constexpr std::size_t most_tiers = 6;

struct ClusterSpec {
  std::string name;
  std::string title;
  DeviceSpec device;
  std::int64_t devices = 0;
  std::int64_t devices_per_node = 0;
  double straggler_per_doubling =
      0;                   // each doubling of the nodes lengthens an iteration by this fraction
  Seconds launch_blocked;  // idle time after each kernel in jobs that set CUDA_LAUNCH_BLOCKING: the
                           // host launches a kernel only after it has seen the previous one end
  Bytes host_memory;       // of a node; 0: unknown
  BytesPerSecond host_memory_bandwidth;  // of all processors of a node; 0: unknown
  DriveSpec drives;
  Operation operation;
  OwnRuns measured;
  std::vector<Tier> tiers;        // `devices` strictly ascending; the last holds the entire cluster
  std::vector<Tier> known_tiers;  // as written, before they were fitted to `devices`
  std::vector<std::string> assumed;
  // With several kinds of devices: one homogeneous cluster per kind; `tiers` above then holds the
  // join tier, `device` and `devices_per_node` those of the first group. Empty: one kind.
  std::vector<ClusterSpec> groups;
};

// The kinds of devices, each a homogeneous cluster: the groups, or the cluster itself, which is
// then the only group.
std::span<const ClusterSpec> groups_of(const ClusterSpec& cluster);

// Whether the kernels of DeepEP and HybridEP run on every device.
bool runs_flex_dispatcher(const ClusterSpec& cluster);
const ClusterSpec& group_of(const ClusterSpec& cluster, int group);

// The name by which a plan asks for a group; empty on one kind of device.
std::string group_name(const ClusterSpec& cluster, int group);

// The memory bandwidth of a node's processors; where the cluster does not state it, that of a
// DGX-2, two sockets of six channels of DDR4-2666.
BytesPerSecond host_memory_bandwidth(const ClusterSpec& cluster);

// A node's drives; where the cluster does not state their rates, those of four PCIe 4 drives.
DriveSpec drives_of(const ClusterSpec& cluster);

// Factor on the iteration time because every collective waits for the slowest node: 1 +
// straggler_per_doubling · log2(nodes).
double straggler_factor(const ClusterSpec& cluster);

// All that lengthens an iteration as a whole: that, and the time factor of the cluster's own runs.
double iteration_factor(const ClusterSpec& cluster);

// Factor on compute time while `devices` devices of a node compute concurrently: 1 for one device
// or without measurements; linear between the measured counts; proportional to `devices` above the
// largest count, where devices take turns.
double slowdown_together(const DeviceSpec& device, double devices);

// The pace at which that was measured, of the row for as many devices, or the next more; 0:
// unknown.
double pace_together(const DeviceSpec& device, double devices);

// The same device when its cores run `pace` times slower than at the measurement of `measured`,
// time-slicing included: each `slowdown` is scaled from its recorded pace to this one, and the
// remaining contention is kept. Unchanged when a Together::pace is unknown.
DeviceSpec at_pace(DeviceSpec device, double pace);

// The device as it is in this cluster: alone on its node, or one of several. Again after a change
// of the number of devices or of the device.
void set_neighbours(ClusterSpec& cluster);

// Fits the tiers to `devices` by removing or stretching them, and records a stretch, and what of
// the device is left out, in `assumed`.
void fit_tiers(ClusterSpec& cluster);

// The same cluster with another number of devices: the tiers as written, fitted again.
ClusterSpec resized(const ClusterSpec& cluster, std::int64_t devices);

// Total peak of all devices of a cluster.
FlopsPerSecond peak_of(const ClusterSpec& cluster, Precision precision);

}  // namespace costmodel
