// Reads a cluster from a file in configs/clusters or from a map.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "costmodel/config/key.hpp"
#include "costmodel/config/search_path.hpp"
#include "costmodel/config/value.hpp"
#include "costmodel/machine/cluster_spec.hpp"

namespace costmodel {

// `device` is the cluster's resolved device. When `devices` disagrees with the tiers (a scenario
// overrides it), the last tier is stretched or tiers are removed to fit, and `assumed` records
// that. A file without `devices` describes a kind of cluster (DGX H100s): it is read with as many
// as its last tier joins. Throws ConfigError.
ClusterSpec read_cluster(const Value& map, const std::string& name, DeviceSpec device);

// Whether the map says how many devices there are: one machine, not a kind of them.
bool says_devices(const Value& cluster);

// Throws ConfigError at `mark` for a cluster that does not: what is planned for it would be planned
// for a size that nobody chose. `key` is what the remedy writes before the map ("cluster: ").
void require_devices(const ResolvedConfig& cluster, const ClusterSpec& read, const Mark& mark,
                     std::string_view key);

// Reads one entry of `tiers`.
Tier read_tier(const Value& value);

// The rows that a cluster of one kind of devices shares with one of several (cluster_groups.hpp).
const Keys<ClusterSpec>& common_cluster_rows();

// The keys of a cluster ("cluster.tiers[].latency_s").
std::vector<KeyText> cluster_keys();

}  // namespace costmodel
