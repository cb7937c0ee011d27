#include "costmodel/machine/cluster_spec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "costmodel/config/map_reader.hpp"

namespace costmodel {

namespace {

constexpr double tiny = 1e-15;

// A map of one group of a device file: {key: quantity, ..., source: where it comes from}. The
// source is required.
MapReader group(MapReader& device, std::string_view key) {
  MapReader reader(device.required(key), std::string(key));
  reader.required("source");
  return reader;
}

double required_number(MapReader& reader, std::string_view key, Dimension dimension, double least,
                       double most) {
  reader.required(key);
  return *reader.number(key, dimension, least, most);
}

void read_peaks(MapReader& device, DeviceSpec& spec) {
  MapReader reader = group(device, "peak_flops_per_s");
  for (std::size_t i = 0; i < precision_count; ++i) {
    spec.peak[i] =
        FlopsPerSecond(reader.number(precision_names[i], Dimension::rate, 1, 1e20).value_or(0));
  }
  reader.finish();
  MapReader vector = group(device, "vector_flops_per_s");
  spec.vector_peak = FlopsPerSecond(required_number(vector, "value", Dimension::rate, 1, 1e20));
  vector.finish();
}

void read_device_memory(MapReader& device, DeviceSpec& spec) {
  MapReader reader = group(device, "memory");
  spec.memory = Bytes(required_number(reader, "bytes", Dimension::size, 1, 1e18));
  spec.memory_bandwidth = BytesPerSecond(
      required_number(reader, "bandwidth_bytes_per_s", Dimension::bandwidth, 1, 1e18));
  reader.finish();
  MapReader reached = group(device, "memory_efficiency");
  spec.memory_efficiency = required_number(reached, "large", Dimension::count, 1e-3, 1);
  spec.memory_half = Bytes(reached.number("half_bytes", Dimension::size, 0, 1e12).value_or(0));
  reached.finish();
}

void read_kernels(MapReader& device, DeviceSpec& spec) {
  MapReader gemm = group(device, "gemm");
  spec.gemm_efficiency = required_number(gemm, "efficiency", Dimension::count, 1e-3, 1);
  spec.gemm_half_k = gemm.number("half_k", Dimension::count, 0, 1e6).value_or(0);
  spec.gemm_start = Seconds(gemm.number("start_s", Dimension::time, 0, 1).value_or(0));
  if (const Value* own = gemm.optional("precision_efficiency")) {
    MapReader inner(*own, "precision_efficiency");
    inner.optional("source");
    for (std::size_t i = 0; i < precision_count; ++i) {
      spec.gemm_precision_efficiency[i] =
          inner.number(std::string(precision_names[i]), Dimension::count, 1e-3, 1).value_or(0);
    }
    inner.finish();
  }
  gemm.finish();
  MapReader attention = group(device, "attention");
  spec.attention_forward =
      required_number(attention, "forward_efficiency", Dimension::count, 1e-3, 1);
  spec.attention_backward =
      required_number(attention, "backward_efficiency", Dimension::count, 1e-3, 1);
  spec.attention2_forward = attention.number("flash2_forward_efficiency", Dimension::count, 1e-3, 1)
                                .value_or(spec.attention_forward);
  spec.attention2_backward =
      attention.number("flash2_backward_efficiency", Dimension::count, 1e-3, 1)
          .value_or(spec.attention_backward);
  spec.attention_half_sequence =
      attention.number("half_sequence", Dimension::count, 0, 1e6).value_or(0);
  spec.attention_half_blocks =
      attention.number("half_blocks", Dimension::count, 0, 1e6).value_or(0);
  spec.attention_half_head_dim =
      attention.number("half_head_dim", Dimension::count, 0, 1e6).value_or(0);
  attention.finish();
  if (const Value* power = device.optional("power")) {
    MapReader inner(*power, "power");
    inner.required("source");
    spec.idle_boost = inner.number("idle_boost", Dimension::count, 0, 0.9).value_or(0);
    inner.finish();
  }
  if (const Value* host = device.optional("host")) {
    MapReader inner(*host, "host");
    inner.required("source");
    spec.host_bandwidth = BytesPerSecond(
        required_number(inner, "bandwidth_bytes_per_s", Dimension::bandwidth, 1, 1e15));
    inner.finish();
  }
  MapReader launch = group(device, "launch");
  spec.kernel_launch = Seconds(required_number(launch, "kernel_s", Dimension::time, 0, 1));
  spec.graph_kernel_launch =
      Seconds(launch.number("graph_kernel_s", Dimension::time, 0, 1).value_or(0));
  launch.finish();
}

void read_measured(MapReader& device, DeviceSpec& spec) {
  const Value* operators = device.optional("operators");
  if (operators == nullptr) return;
  MapReader reader(*operators, "operators");
  reader.required("source");
  spec.measured = read_rate_tables(reader.required("tables"));
  reader.finish();
}

void read_together(MapReader& device, DeviceSpec& spec) {
  const Value* list = device.optional("together");
  if (list == nullptr) return;
  if (list->kind != Value::Kind::sequence) {
    throw ConfigError(list->mark, "together is not a list",
                      "write a list of {devices, slowdown, source}");
  }
  double last = 0;
  for (const Value& item : list->items) {
    MapReader reader(item, "together");
    reader.required("source");
    const double devices = required_number(reader, "devices", Dimension::count, 1, 1e6);
    if (devices <= last)
      throw ConfigError(item.mark, "devices does not grow", "list fewer devices first");
    spec.together.push_back({devices,
                             required_number(reader, "slowdown", Dimension::count, 0.01, 1e6),
                             reader.number("pace", Dimension::count, 0.01, 1e6).value_or(0)});
    reader.finish();
    last = devices;
  }
}

void read_pace(MapReader& device, DeviceSpec& spec) {
  const Value* pace = device.optional("pace");
  if (pace == nullptr) return;
  MapReader reader(*pace, "pace");
  reader.required("source");
  spec.yardstick = Seconds(required_number(reader, "yardstick_s", Dimension::time, 1e-9, 1));
  reader.finish();
}

void read_groups(const Value* list, Tier& tier) {
  if (list == nullptr) return;
  if (list->kind != Value::Kind::sequence) {
    throw ConfigError(list->mark, "groups is not a list of groups",
                      "write a list of {devices, bandwidth_bytes_per_s}");
  }
  for (const Value& item : list->items) {
    MapReader reader(item, "group");
    reader.required("devices");
    const auto devices = static_cast<int>(*reader.integer("devices", {2, 1'000'000}));
    if (!tier.groups.empty() && devices <= tier.groups.back().devices)
      throw ConfigError(item.mark, "devices does not grow", "list smaller groups first");
    tier.groups.push_back(
        {devices, BytesPerSecond(required_number(reader, "bandwidth_bytes_per_s",
                                                 Dimension::bandwidth, 1, 1e18))});
    reader.finish();
  }
}

}  // namespace

Tier read_tier(const Value& value) {
  MapReader reader(value, "tier");
  Tier tier;
  reader.required("name");
  tier.name = *reader.text("name");
  reader.required("devices");
  tier.devices = *reader.integer("devices", {1, 100'000'000});
  tier.bandwidth = BytesPerSecond(
      required_number(reader, "bandwidth_bytes_per_s", Dimension::bandwidth, 1, 1e18));
  const auto single = reader.number("single_bandwidth_bytes_per_s", Dimension::bandwidth, 1, 1e18);
  tier.single = BytesPerSecond(single.value_or(0));
  tier.latency = Seconds(required_number(reader, "latency_s", Dimension::time, 0, 10));
  tier.fixed = Seconds(reader.number("fixed_s", Dimension::time, 0, 10).value_or(0));
  tier.efficiency = reader.number("efficiency", Dimension::count, tiny, 1).value_or(1);
  if (const Value* list = reader.optional("measured"))
    tier.measured = read_collective_tables(*list);
  read_groups(reader.optional("groups"), tier);
  reader.optional("source");
  reader.finish();
  return tier;
}

double read_straggler(const Value& value) {
  MapReader reader(value, "straggler");
  reader.required("source");
  const double per_doubling = reader.number("per_doubling", Dimension::count, 0, 1).value_or(0);
  reader.finish();
  return per_doubling;
}

namespace {

void read_tiers(MapReader& reader, ClusterSpec& cluster) {
  const Value& list = reader.required("tiers");
  if (list.kind != Value::Kind::sequence || list.items.empty()) {
    throw ConfigError(list.mark, "tiers is not a list of tiers",
                      "write a list, from the innermost tier out");
  }
  for (const auto& item : list.items) {
    cluster.tiers.push_back(read_tier(item));
    const std::size_t n = cluster.tiers.size();
    if (n > 1 && cluster.tiers[n - 1].devices <= cluster.tiers[n - 2].devices) {
      throw ConfigError(
          item.mark,
          fmt::format("tier '{}' is not larger than the tier inside it", cluster.tiers[n - 1].name),
          "list the tiers from the innermost out, `devices` growing");
    }
  }
}

// A scenario overrides `devices` or `devices_per_node` alone: the tiers follow.
void fit_tiers(ClusterSpec& cluster) {
  auto& tiers = cluster.tiers;
  if (tiers.size() > 1 && tiers.front().devices != cluster.devices_per_node) {
    tiers.front().devices = cluster.devices_per_node;
  }
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
}

}  // namespace

BytesPerSecond Tier::reached(int size) const {
  BytesPerSecond found(bandwidth.value * efficiency);
  if (groups.empty() || size > groups.back().devices) return found;
  for (const Group& group : groups)
    if (group.devices <= size) found = group.bandwidth;
  return found;
}

double straggler_factor(const ClusterSpec& cluster) {
  double nodes =
      static_cast<double>(cluster.devices) / static_cast<double>(cluster.devices_per_node);
  if (!cluster.groups.empty()) nodes = 0;
  for (const ClusterSpec& group : cluster.groups) {
    nodes +=
        std::ceil(static_cast<double>(group.devices) / static_cast<double>(group.devices_per_node));
  }
  return nodes > 1 ? 1 + cluster.straggler_per_doubling * std::log2(nodes) : 1;
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

DeviceSpec at_pace(DeviceSpec device, double pace) {
  const bool said =
      !device.together.empty() && std::all_of(device.together.begin(), device.together.end(),
                                              [](const auto& here) { return here.pace > 0; });
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

ClusterSpec resized(const ClusterSpec& cluster, std::int64_t devices) {
  ClusterSpec other = cluster;
  other.devices = devices;
  other.assumed.clear();
  if (!other.known_tiers.empty()) other.tiers = other.known_tiers;
  fit_tiers(other);
  return other;
}

DeviceSpec read_device(const Value& map, const std::string& name) {
  MapReader reader(map, fmt::format("device '{}'", name));
  DeviceSpec device;
  device.name = name;
  device.title = reader.text("title").value_or(name);
  read_peaks(reader, device);
  MapReader processors = group(reader, "multiprocessors");
  processors.required("value");
  device.multiprocessors = static_cast<int>(*processors.integer("value", {1, 1'000'000}));
  processors.finish();
  read_device_memory(reader, device);
  read_kernels(reader, device);
  read_measured(reader, device);
  read_together(reader, device);
  read_pace(reader, device);
  reader.optional("source");
  reader.optional("notes");
  reader.optional("machine");  // what `shardplan calibrate --backend` measured; read by people
  reader.optional("fit");      // what `shardplan calibrate` fitted it to; read by people
  reader.finish();
  return device;
}

ClusterSpec read_cluster(const Value& map, const std::string& name, DeviceSpec device) {
  MapReader reader(map, name.empty() ? "cluster" : fmt::format("cluster '{}'", name));
  ClusterSpec cluster;
  cluster.name = name;
  cluster.device = std::move(device);
  reader.required("device");
  cluster.title = reader.text("title").value_or(name);
  reader.required("devices");
  cluster.devices = *reader.integer("devices", {1, 1'000'000});
  const auto per_node = reader.integer("devices_per_node", {1, 100'000});
  if (const Value* straggler = reader.optional("straggler"))
    cluster.straggler_per_doubling = read_straggler(*straggler);
  if (const Value* blocking = reader.optional("launch_blocking")) {
    MapReader inner(*blocking, "launch_blocking");
    inner.required("source");
    cluster.launch_blocked = Seconds(required_number(inner, "kernel_s", Dimension::time, 0, 1));
    inner.finish();
  }
  read_tiers(reader, cluster);
  cluster.devices_per_node = per_node.value_or(cluster.tiers.front().devices);
  reader.optional("source");
  reader.optional("notes");
  reader.optional("machine");
  reader.optional("fit");  // as of a device
  reader.finish();
  cluster.known_tiers = cluster.tiers;
  fit_tiers(cluster);
  return cluster;
}

}  // namespace costmodel
