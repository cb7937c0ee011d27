#include "costmodel/machine/cluster_groups.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "costmodel/base/escape.hpp"
#include "costmodel/config/key.hpp"
#include "costmodel/machine/cluster_reader.hpp"
#include "costmodel/machine/device_reader.hpp"

namespace costmodel {

namespace {

void lend(Value& to, const Value& from, const char* key) {
  const Value* lent = from.find(key);
  if (to.find(key) == nullptr && lent != nullptr) to.set(key, *lent);
}

Value without(Value map, std::string_view key) {
  const auto named = [key](const Value::Entry& entry) { return entry.key == key; };
  map.entries.erase(std::remove_if(map.entries.begin(), map.entries.end(), named),
                    map.entries.end());
  return map;
}

ClusterSpec read_group(const Value& item, const Value& cluster, const ConfigPath& path) {
  const Value* label = item.is_map() ? item.find("name") : nullptr;
  const ResolvedConfig own = resolve_config(path, "clusters", without(item, "name"));
  Value map = own.value;
  lend(map, cluster, "tiers");
  lend(map, cluster, "devices_per_node");
  const Value* device_key = map.find("device");
  if (device_key == nullptr) {
    throw ConfigError(item.mark, "the group lacks the key 'device'",
                      "add device: NAME (see `shardplan list devices`), or base: a cluster");
  }
  const ResolvedConfig device = resolve_config(path, "devices", *device_key);
  ClusterSpec group = read_cluster(map, own.name, read_device(device.value, device.name));
  require_devices(own, group, item.mark, "");
  group.name = label != nullptr ? read_text(*label, "name") : group.device.name;
  return group;
}

// The join tier for `devices` devices: `join`, or the outermost of the cluster's tiers.
Tier joining_tier(const Value* join, const Value& map, std::int64_t devices) {
  const Value* tiers = map.find("tiers");
  if (join == nullptr && tiers != nullptr && !tiers->items.empty()) join = &tiers->items.back();
  if (join == nullptr) {
    throw ConfigError(map.mark, "the cluster does not say what joins its groups",
                      "add join: {bandwidth_bytes_per_s, latency_s}");
  }
  Value tier = *join;
  if (!tier.is_map()) throw ConfigError(tier.mark, "join is not a map", "write {...}");
  if (tier.find("name") == nullptr) tier.set("name", scalar_value("join", tier.mark));
  tier.set("devices", scalar_value(fmt::format("{}", devices), tier.mark));
  return read_tier(tier);
}

// What is read, and what its groups are made of beside their own maps.
struct Reading {
  ClusterSpec cluster;
  const Value& map;
  const ConfigPath& path;
};

// Groups first: what the cluster does not say, the slowest of them says.
void read_group_list(const Value& list, Reading& r) {
  ClusterSpec& cluster = r.cluster;
  if (list.kind != Value::Kind::sequence || list.items.empty()) {
    throw ConfigError(list.mark, "groups is not a list of groups",
                      "write a list of {device, devices, ...}");
  }
  for (const Value& item : list.items) {
    ClusterSpec group = read_group(item, r.map, r.path);
    if (group.measured.runs > 0) {
      throw ConfigError(item.mark, "measured is not for a group among others",
                        "it is of all of a cluster of one kind of devices: leave it out");
    }
    for (const ClusterSpec& other : cluster.groups) {
      if (other.name != group.name) continue;
      throw ConfigError(item.mark, fmt::format("two groups are called {}", quote(group.name)),
                        "give one of them a name of its own");
    }
    cluster.devices += group.devices;
    for (const std::string& assumption : group.assumed)
      cluster.assumed.push_back(fmt::format("group '{}': {}", group.name, assumption));
    cluster.straggler_per_doubling =
        std::max(cluster.straggler_per_doubling, group.straggler_per_doubling);
    cluster.groups.push_back(std::move(group));
  }
}

// What a cluster of one kind of devices has not.
const Keys<Reading>& grouped_rows() {
  using R = Reading;
  static const auto keys = key::rows<R>(
      key::required(key::special<R>(
          "groups",
          key::fixed_text("a list of clusters, each with a `name` if two have the same device"),
          "kinds of devices, in place of device and devices",
          [](MapReader& reader, R& r) { read_group_list(reader.required("groups"), r); })),
      key::special<R>(
          "join", key::fixed_text("a map of the keys of a tier"),
          "the tier between groups; absent: the outermost of tiers", [](MapReader& reader, R& r) {
            r.cluster.tiers = {joining_tier(reader.optional("join"), r.map, r.cluster.devices)};
          }));
  return keys;
}

}  // namespace

ClusterSpec read_grouped_cluster(const Value& map, const std::string& name,
                                 const ConfigPath& path) {
  MapReader reader(map, name.empty() ? "cluster" : "cluster " + quote(name));
  Reading reading{{}, map, path};
  ClusterSpec& cluster = reading.cluster;
  cluster.name = cluster.title = name;
  read_keys(reader, grouped_rows(), reading);
  read_keys(reader, common_cluster_rows(), cluster);
  cluster.device = cluster.groups.front().device;
  cluster.devices_per_node = cluster.groups.front().devices_per_node;
  reader.optional("devices_per_node");  // lent to the groups, and so are tiers
  reader.optional("tiers");
  if (const auto devices = reader.integer("devices", {1, 1'000'000});
      devices && *devices != cluster.devices) {
    throw ConfigError(reader.mark_of("devices"),
                      fmt::format("devices is {}, the groups have {}", *devices, cluster.devices),
                      "leave it out, and set the devices of the groups");
  }
  reader.finish();
  return std::move(reading.cluster);
}

std::vector<KeyText> grouped_cluster_keys() { return described(grouped_rows(), "cluster."); }

namespace {

// What `text` says of each group.
template <class Text>
std::string told_of_groups(const ClusterSpec& cluster, const char* between, Text text) {
  std::string all;
  for (const ClusterSpec& group : groups_of(cluster))
    all += (all.empty() ? "" : between) + text(group);
  return all;
}

}  // namespace

std::string device_names(const ClusterSpec& cluster) {
  return told_of_groups(cluster, "+", [](const ClusterSpec& group) { return group.device.name; });
}

std::string devices_text(const ClusterSpec& cluster) {
  return told_of_groups(cluster, " and ", [](const ClusterSpec& group) {
    return fmt::format("{} x {}", format_integer(group.devices), group.device.title);
  });
}

FlopsPerSecond peak_of(const ClusterSpec& cluster, Precision precision) {
  FlopsPerSecond sum;
  for (const ClusterSpec& group : groups_of(cluster))
    sum += group.device.peak_of(precision) * static_cast<double>(group.devices);
  return sum;
}

ClusterSpec joined_view(const ClusterSpec& cluster, const ClusterSpec& group) {
  ClusterSpec view = group;
  view.tiers = {group.tiers.front(), cluster.tiers.back()};
  view.tiers.front().devices = std::min(group.devices_per_node, group.devices);
  view.devices = cluster.devices;
  return view;
}

}  // namespace costmodel
