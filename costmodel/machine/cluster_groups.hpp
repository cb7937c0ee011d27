// Clusters with several kinds of devices: each group is a homogeneous cluster, and a join tier
// connects the groups.
#pragma once

#include <string>
#include <vector>

#include "costmodel/config/key_text.hpp"
#include "costmodel/config/search_path.hpp"
#include "costmodel/machine/cluster_spec.hpp"

namespace costmodel {

// Reads `groups: [{name, device, devices, devices_per_node, tiers}, ...]`. A group may also be a
// name in configs/clusters or a map with `base:`. A group without `tiers` uses the cluster's.
// `join: {name, bandwidth_bytes_per_s, latency_s, ...}` is the tier between groups; without it the
// outermost of the cluster's `tiers` is. Throws ConfigError.
ClusterSpec read_grouped_cluster(const Value& map, const std::string& name, const ConfigPath& path);

// The keys that such a cluster has beside those of one kind of devices.
std::vector<KeyText> grouped_cluster_keys();

// "a100-sxm4-80gb"; with groups "v100-sxm2-16gb+t4".
std::string device_names(const ClusterSpec& cluster);

// "1,536 x NVIDIA A100"; with groups "12 x NVIDIA V100 and 4 x NVIDIA T4".
std::string devices_text(const ClusterSpec& cluster);

// The network between two devices of different groups: the node of `group`, then the join tier.
ClusterSpec joined_view(const ClusterSpec& cluster, const ClusterSpec& group);

}  // namespace costmodel
