#include "costmodel/machine/cluster_reader.hpp"

#include <fmt/format.h>

#include <utility>

#include "costmodel/base/escape.hpp"
#include "costmodel/config/map_reader.hpp"
#include "costmodel/machine/collective_table_reader.hpp"

namespace costmodel {

namespace {

constexpr double tiny = 1e-15;

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
    tier.groups.push_back({devices, BytesPerSecond(reader.required_number(
                                        "bandwidth_bytes_per_s", Dimension::bandwidth, 1, 1e18))});
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
      reader.required_number("bandwidth_bytes_per_s", Dimension::bandwidth, 1, 1e18));
  const auto single = reader.number("single_bandwidth_bytes_per_s", Dimension::bandwidth, 1, 1e18);
  tier.single = BytesPerSecond(single.value_or(0));
  tier.latency = Seconds(reader.required_number("latency_s", Dimension::time, 0, 10));
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
    if (n > most_tiers) {
      throw ConfigError(item.mark, fmt::format("tiers lists more than {}", most_tiers),
                        "make one of tiers that are about as fast");
    }
    if (n > 1 && cluster.tiers[n - 1].devices <= cluster.tiers[n - 2].devices) {
      throw ConfigError(item.mark,
                        fmt::format("tier {} is not larger than the tier inside it",
                                    quote(cluster.tiers[n - 1].name)),
                        "list the tiers from the innermost out, `devices` growing");
    }
  }
}

}  // namespace

ClusterSpec read_cluster(const Value& map, const std::string& name, DeviceSpec device) {
  MapReader reader(map, name.empty() ? "cluster" : "cluster " + quote(name));
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
    cluster.launch_blocked = Seconds(inner.required_number("kernel_s", Dimension::time, 0, 1));
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
