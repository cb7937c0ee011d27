// Reads a cluster from a file in configs/clusters or from a map.
#pragma once

#include <string>
#include <vector>

#include "costmodel/config/key.hpp"
#include "costmodel/config/value.hpp"
#include "costmodel/machine/cluster_spec.hpp"

namespace costmodel {

// `device` is the cluster's resolved device. When `devices` disagrees with the tiers (a scenario
// overrides it), the last tier is stretched or tiers are removed to fit, and `assumed` records
// that. Throws ConfigError.
ClusterSpec read_cluster(const Value& map, const std::string& name, DeviceSpec device);

// Reads one entry of `tiers`.
Tier read_tier(const Value& value);

// The rows that a cluster of one kind of devices shares with one of several (cluster_groups.hpp).
const Keys<ClusterSpec>& common_cluster_rows();

// The keys of a cluster ("cluster.tiers[].latency_s").
std::vector<KeyText> cluster_keys();

}  // namespace costmodel
