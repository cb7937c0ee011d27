#include "costmodel/machine/cluster_spec.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "costmodel/base/unit_text.hpp"

namespace costmodel {

BytesPerSecond Tier::reached(int size) const {
  BytesPerSecond found(bandwidth.value * efficiency);
  if (groups.empty() || size > groups.back().devices) return found;
  for (const Group& group : groups)
    if (group.devices <= size) found = group.bandwidth;
  return found;
}

double DeviceSpec::narrow_attention_speedup(double head_dim, bool forward) const {
  const auto& known = forward ? narrow_attention_forward : narrow_attention_backward;
  const double at = std::clamp((head_dim - 128) / (192 - 128), 0.0, 1.0);
  return known[0] + at * (known[1] - known[0]);
}

std::span<const ClusterSpec> groups_of(const ClusterSpec& cluster) {
  if (cluster.groups.empty()) return {&cluster, 1};
  return cluster.groups;
}

bool runs_flex_dispatcher(const ClusterSpec& cluster) {
  return std::ranges::all_of(groups_of(cluster),
                             [](const ClusterSpec& g) { return g.device.flex_dispatcher; });
}

const ClusterSpec& group_of(const ClusterSpec& cluster, int group) {
  return groups_of(cluster)[static_cast<std::size_t>(group)];
}

std::string group_name(const ClusterSpec& cluster, int group) {
  const auto g = static_cast<std::size_t>(group);
  return g < cluster.groups.size() ? cluster.groups[g].name : "";
}

BytesPerSecond host_memory_bandwidth(const ClusterSpec& cluster) {
  constexpr BytesPerSecond dgx2(256e9);
  return cluster.host_memory_bandwidth.value > 0 ? cluster.host_memory_bandwidth : dgx2;
}

DriveSpec drives_of(const ClusterSpec& cluster) {
  // DeepSpeed's ds_io on an Azure NC96ads A100 v4 (DeepSpeed, blogs/deepnvme/08-2024).
  constexpr BytesPerSecond read(10e9), write(5e9);
  DriveSpec drives = cluster.drives;
  if (drives.read.value <= 0) drives.read = read;
  if (drives.write.value <= 0) drives.write = write;
  return drives;
}

double straggler_factor(const ClusterSpec& cluster) {
  double nodes = 0;
  for (const ClusterSpec& group : groups_of(cluster)) {
    nodes +=
        std::ceil(static_cast<double>(group.devices) / static_cast<double>(group.devices_per_node));
  }
  return nodes > 1 ? 1 + cluster.straggler_per_doubling * std::log2(nodes) : 1;
}

double iteration_factor(const ClusterSpec& cluster) {
  return straggler_factor(cluster) * cluster.measured.time_factor;
}

double slowdown_together(const DeviceSpec& device, double devices) {
  DeviceSpec::Together below{1, 1};
  for (const auto& here : device.together) {
    if (here.devices > below.devices && devices <= here.devices) {
      const double share = (devices - below.devices) / (here.devices - below.devices);
      return below.slowdown + std::max(0.0, share) * (here.slowdown - below.slowdown);
    }
    below = here;
  }
  return device.together.empty() ? 1 : below.slowdown * devices / below.devices;
}

double pace_together(const DeviceSpec& device, double devices) {
  for (const auto& here : device.together)
    if (devices <= here.devices) return here.pace;
  return device.together.empty() ? 0 : device.together.back().pace;
}

DeviceSpec at_pace(DeviceSpec device, double pace) {
  const bool said =
      !device.together.empty() &&
      std::ranges::all_of(device.together, [](const auto& here) { return here.pace > 0; });
  if (!said) return device;
  for (auto& here : device.together) {
    here.slowdown *= pace / here.pace;
    here.pace = pace;
  }
  auto all = device.together.back();
  all.devices = std::numeric_limits<double>::max();
  device.together.push_back(all);
  return device;
}

void set_neighbours(ClusterSpec& cluster) {
  DeviceSpec& device = cluster.device;
  const bool alone = std::min(cluster.devices, cluster.devices_per_node) == 1;
  if (!device.alone || alone == device.is_alone) return;
  const auto scale = [alone](auto& figure, double times) {
    figure = alone ? figure * times : figure / times;
  };
  scale(device.gemm_efficiency, device.alone->gemm_efficiency);
  scale(device.gemm_half_k, device.alone->gemm_half_k);
  scale(device.gemm_start, device.alone->gemm_start);
  scale(device.memory_efficiency, device.alone->memory_efficiency);
  device.is_alone = alone;
}

// A scenario may override only `devices`; the tiers are then adjusted.
void fit_tiers(ClusterSpec& cluster) {
  set_neighbours(cluster);
  auto& tiers = cluster.tiers;
  while (tiers.size() > 1 && tiers[tiers.size() - 2].devices >= cluster.devices) tiers.pop_back();
  Tier& last = tiers.back();
  if (last.devices < cluster.devices) {
    const std::string whose = !cluster.title.empty()  ? cluster.title
                              : !cluster.name.empty() ? cluster.name
                                                      : "this cluster";
    cluster.assumed.push_back(fmt::format(
        "{} devices are more than the {} that the description of {} joins: links between are "
        "priced as its widest tier's, '{}'",
        format_integer(cluster.devices), format_integer(last.devices), whose, last.name));
  }
  last.devices = cluster.devices;
  if (!cluster.device.left_out.empty()) cluster.assumed.push_back(cluster.device.left_out);
}

ClusterSpec resized(const ClusterSpec& cluster, std::int64_t devices) {
  ClusterSpec other = cluster;
  other.devices = devices;
  other.assumed.clear();
  if (!other.known_tiers.empty()) other.tiers = other.known_tiers;
  fit_tiers(other);
  return other;
}

}  // namespace costmodel
