#include "costmodel/machine/cluster_reader.hpp"

#include <fmt/format.h>

#include <utility>

#include "costmodel/base/escape.hpp"
#include "costmodel/base/unit_text.hpp"
#include "costmodel/machine/collective_table_reader.hpp"
#include "costmodel/machine/plausible.hpp"

namespace costmodel {

namespace {

using C = ClusterSpec;

constexpr double tiny = 1e-15;

const Keys<Tier::Group>& group_rows() {
  using G = Tier::Group;
  static const auto keys = key::rows<G>(
      key::required(key::whole<G>("devices", &G::devices, {2, 1'000'000}, "of the group")),
      key::required(key::number<G>("bandwidth_bytes_per_s", &G::bandwidth, plausible::link,
                                   "what a device reaches in it")));
  return keys;
}

void read_groups(const Value& list, Tier& tier) {
  if (list.kind != Value::Kind::sequence) {
    throw ConfigError(list.mark, "groups is not a list of groups",
                      "write a list of {devices, bandwidth_bytes_per_s}");
  }
  for (const Value& item : list.items) {
    Tier::Group group{};
    read_map(item, "group", group_rows(), group);
    if (!tier.groups.empty() && group.devices <= tier.groups.back().devices)
      throw ConfigError(item.mark, "devices does not grow", "list smaller groups first");
    tier.groups.push_back(group);
  }
}

const Keys<Tier>& tier_rows() {
  static const auto keys = key::rows<Tier>(
      key::required(key::text<Tier>("name", &Tier::name, "for people")),
      key::required(
          key::whole<Tier>("devices", &Tier::devices, {1, 100'000'000}, "of a unit of this tier")),
      key::required(key::number<Tier>("bandwidth_bytes_per_s", &Tier::bandwidth, plausible::link,
                                      "of a device, one direction, all sending")),
      key::number<Tier>("single_bandwidth_bytes_per_s", &Tier::single, plausible::link,
                        "of a device alone, where links are shared"),
      key::required(key::number<Tier>("latency_s", &Tier::latency, plausible::hop, "of one hop")),
      key::number<Tier>("fixed_s", &Tier::fixed, plausible::collective_start,
                        "start-up time of any collective that reaches this tier"),
      key::number<Tier>("efficiency", &Tier::efficiency, tiny, 1,
                        "fraction of the bandwidth that large messages reach"),
      key::special<Tier>(
          "measured",
          key::fixed_text("a list of {collective, ranks, bytes: [...], bytes_per_s: [...]}"),
          "collectives within the tier as measured, in place of the formulas",
          [](MapReader& reader, Tier& tier) {
            if (const Value* list = reader.optional("measured"))
              tier.measured = read_collective_tables(*list);
          }),
      key::list<Tier>("groups", group_rows(),
                      "groups of a unit's devices that have fewer of the links", read_groups),
      key::source<Tier>());
  return keys;
}

}  // namespace

Tier read_tier(const Value& value) {
  Tier tier;
  read_map(value, "tier", tier_rows(), tier);
  return tier;
}

namespace {

void read_tiers(const Value& list, C& cluster) {
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

const Keys<C>& straggler_rows() {
  static const auto keys = key::rows<C>(
      key::required_source<C>(),
      key::number<C>("per_doubling", &C::straggler_per_doubling, 0, 1,
                     "part by which each doubling of the nodes lengthens an iteration"));
  return keys;
}

const Keys<C>& blocking_rows() {
  static const auto keys =
      key::rows<C>(key::required_source<C>(),
                   key::required(key::number<C>("kernel_s", &C::launch_blocked, plausible::kernel,
                                                "idle time after each kernel, where jobs set "
                                                "CUDA_LAUNCH_BLOCKING")));
  return keys;
}

const Keys<Operation>& price_rows() {
  using O = Operation;
  static const auto keys = key::rows<O>(
      key::source<O>(),
      key::required(key::number<O>("usd_per_device_hour", &O::usd_per_device_hour, 1e-4, 1e4,
                                   "what a device costs an hour, its part of the node and the "
                                   "network included")),
      key::text<O>("date", &O::price_date, "when that was the price"));
  return keys;
}

const Keys<Operation>& node_power_rows() {
  using O = Operation;
  static const auto keys =
      key::rows<O>(key::source<O>(),
                   key::required(key::number<O>("watts_per_device", &O::watts_per_device, 1, 1e6,
                                                "a device's share of a node at full load")));
  return keys;
}

const Keys<Operation>& failure_rows() {
  using O = Operation;
  constexpr double century = 876'600;  // hours
  static const auto keys =
      key::rows<O>(key::source<O>(),
                   key::number<O>("device_hours", &O::device_hours_per_failure, 1, 100 * century,
                                  "hours of all devices for each failure that stops a job"),
                   key::number<O>("restart_s", &O::restart, 0, 1e6,
                                  "from a failure until the job reads its checkpoint"));
  return keys;
}

const Keys<Operation>& storage_rows() {
  using O = Operation;
  static const auto keys = key::rows<O>(
      key::source<O>(),
      key::required(key::number<O>("bytes_per_s_per_device", &O::storage, 1e3, 1e12,
                                   "a device's share while all write or read a checkpoint")));
  return keys;
}

const Keys<C>& node_host_rows() {
  static const auto keys = key::rows<C>(
      key::required_source<C>(),
      key::number<C>("memory_bytes", &C::host_memory, 1e9, 1e15, "memory of a node's processors"),
      key::number<C>("memory_bandwidth_bytes_per_s", &C::host_memory_bandwidth, 1e9, 1e14,
                     "of that memory, all sockets together"),
      key::number<C>(
          "nvme_bytes", [](C& c) -> Bytes& { return c.drives.size; }, 1e9, 1e16,
          "NVMe drives of a node, all together"),
      key::number<C>(
          "nvme_read_bytes_per_s", [](C& c) -> BytesPerSecond& { return c.drives.read; }, 1e8, 1e13,
          "read from all of them at once"),
      key::number<C>(
          "nvme_write_bytes_per_s", [](C& c) -> BytesPerSecond& { return c.drives.write; }, 1e8,
          1e13, "written to all of them at once"));
  return keys;
}

void read_traces(const Value& list, OwnRuns& own) {
  constexpr std::size_t most_traces = 64;
  if (list.kind != Value::Kind::sequence || list.items.size() > most_traces) {
    throw ConfigError(list.mark, fmt::format("traces is not a list of at most {}", most_traces),
                      "take what shardplan calibrate --from-trace wrote");
  }
  for (const Value& item : list.items) {
    read_map(item, "a trace", traced_run_rows(), own.traces.emplace_back());
    // Of a kind that was not measured nothing is known.
    constexpr double unknown = 10;
    TracedRun& trace = own.traces.back();
    for (std::size_t kind = 0; kind < kernel_kind_count; ++kind)
      if (trace.kinds[kind] == 1 && trace.noise[kind] == 0) trace.noise[kind] = unknown;
  }
}

const Keys<OwnRuns>& own_runs_rows() {
  using O = OwnRuns;
  static const auto keys = key::rows<O>(
      key::source<O>(),
      key::list<O>("traces", traced_run_rows(), "profiled runs among them", read_traces),
      key::required(key::whole<O>("runs", &O::runs, {1, 1'000'000}, "of one's own, on it")),
      key::required(key::text<O>("stack", &O::stack, "of those runs; another one's times stay")),
      key::required(
          key::number<O>("time_factor", &O::time_factor, 0.1, 10, "on the time of an iteration")),
      key::number<O>("kernel_s", &O::kernel_launch, 0, 10,
                     "host time per kernel, in place of the stack's launch.kernel_s"),
      key::required(key::number<O>("low", &O::low, 0.01, 1,
                                   "5th percentile of measured over predicted, with the factor")),
      key::required(key::number<O>("high", &O::high, 1, 100, "95th percentile")));
  return keys;
}

const Keys<C>& cluster_rows() {
  static const Keys<C> keys = joined<C>(
      key::rows<C>(
          key::required(key::special<C>(
              "device", key::fixed_text("a name in configs/devices, a file, or a map"),
              "all of its devices", [](MapReader&, C&) {})),
          key::whole<C>("devices", &C::devices, {1, 1'000'000},
                        "of the cluster; absent: a kind of cluster, whose scenario says it"),
          key::whole<C>("devices_per_node", &C::devices_per_node, {1, 100'000},
                        "absent: of the innermost tier"),
          key::map<C>("launch_blocking", std::identity{}, blocking_rows()),
          key::map<C>("measured", &C::measured, own_runs_rows()),
          key::list<C>("tiers", tier_rows(),
                       "of the network, the innermost first; one device needs none", read_tiers)),
      common_cluster_rows(),
      key::rows<C>(key::note<C>("machine", "what `shardplan calibrate` measured"),
                   key::note<C>("fit", "what `shardplan calibrate` fitted")));
  return keys;
}

}  // namespace

const Keys<C>& common_cluster_rows() {
  static const auto keys = key::rows<C>(key::text<C>("title", &C::title, "for people"),
                                        key::note<C>("names",
                                                     "what people call its devices: "
                                                     "--gpus 64xh100 finds it by them"),
                                        key::map<C>("straggler", std::identity{}, straggler_rows()),
                                        key::map<C>("host", std::identity{}, node_host_rows()),
                                        key::map<C>("price", &C::operation, price_rows()),
                                        key::map<C>("power", &C::operation, node_power_rows()),
                                        key::map<C>("failures", &C::operation, failure_rows()),
                                        key::map<C>("storage", &C::operation, storage_rows()),
                                        key::source<C>(), key::note<C>("notes", "for people"));
  return keys;
}

namespace {

// The tier of one device, over which nothing is sent.
Tier alone(const DeviceSpec& device) {
  Tier tier;
  tier.name = "device";
  tier.devices = 1;
  tier.bandwidth = device.memory_bandwidth;
  return tier;
}

// Where `devices_per_node` is written over a base, the innermost tier becomes that of such a node;
// a file that has both means what it has: a node may have several tiers, as pairs of NVLink
// bridges, and a tier several nodes, as a rack.
void fit_node(const Value& map, ClusterSpec& cluster) {
  if (cluster.devices_per_node == 0) cluster.devices_per_node = cluster.tiers.front().devices;
  auto& tiers = cluster.tiers;
  const Value *node = map.find("devices_per_node"), *written = map.find("tiers");
  const bool over = node != nullptr && written != nullptr && node->mark.file != written->mark.file;
  if (!over || tiers.size() < 2) return;
  tiers.front().devices = cluster.devices_per_node;
  while (tiers.size() > 2 && tiers[1].devices <= tiers[0].devices) tiers.erase(tiers.begin() + 1);
}

}  // namespace

ClusterSpec read_cluster(const Value& map, const std::string& name, DeviceSpec device) {
  ClusterSpec cluster;
  cluster.name = cluster.title = name;
  cluster.device = std::move(device);
  const std::string what = name.empty() ? "cluster" : "cluster " + quote(name);
  read_map(map, what, cluster_rows(), cluster);
  if (cluster.tiers.empty() && cluster.devices == 1) {
    cluster.tiers.push_back(alone(cluster.device));
  } else if (cluster.tiers.empty()) {
    throw ConfigError(map.mark, what + " lacks the key 'tiers'",
                      "add tiers: [{name: pcie, devices: 8, bandwidth_bytes_per_s: 25 GB/s, "
                      "latency_s: 10 us}], the innermost first (docs/own-cluster.md)");
  }
  if (cluster.devices == 0) cluster.devices = cluster.tiers.back().devices;
  fit_node(map, cluster);
  cluster.known_tiers = cluster.tiers;
  fit_tiers(cluster);
  return cluster;
}

bool says_devices(const Value& cluster) {
  const Value* devices = cluster.find("devices");
  return devices != nullptr && devices->kind != Value::Kind::null;
}

void require_devices(const ResolvedConfig& cluster, const ClusterSpec& read, const Mark& mark,
                     std::string_view key) {
  if (says_devices(cluster.value)) return;
  if (cluster.name.empty())
    throw ConfigError(mark, "cluster lacks the key 'devices'", "add devices: N, all of them");
  throw ConfigError(
      mark,
      fmt::format("cluster {} is a kind of cluster, not one of so many devices",
                  quote(cluster.name)),
      fmt::format("write {}{{base: {}, devices: N}}; its links are described for up to {}", key,
                  shortened(cluster.name), format_integer(read.devices)));
}

std::vector<KeyText> cluster_keys() { return described(cluster_rows(), "cluster."); }

}  // namespace costmodel
