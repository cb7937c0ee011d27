// Clusters of several kinds of devices: groups, each a cluster of its own, and what joins them.
#pragma once

#include <string>
#include <vector>

#include "costmodel/config/search_path.hpp"
#include "costmodel/machine/cluster_spec.hpp"

namespace costmodel {

// `groups: [{name, device, devices, devices_per_node, tiers}, ...]`, each of them also a name in
// configs/clusters or a map with `base:`. Tiers that a group has not are the cluster's own `tiers`.
// `join: {name, bandwidth_bytes_per_s, latency_s, ...}` is the tier between groups; without it the
// outermost of the cluster's `tiers`. Throws ConfigError.
ClusterSpec read_grouped_cluster(const Value& map, const std::string& name, const ConfigPath& path);

// The kinds of devices, first to last: one where there are no groups.
std::vector<const DeviceSpec*> kinds_of(const ClusterSpec& cluster);

// "a100-sxm4-80gb", or of groups "v100-sxm2-16gb+t4".
std::string device_names(const ClusterSpec& cluster);

// "1,536 x NVIDIA A100", or of groups "12 x NVIDIA V100 and 4 x NVIDIA T4".
std::string devices_text(const ClusterSpec& cluster);

// The network as two devices of different groups see it: the node of one, and the tier that joins.
ClusterSpec joined_view(const ClusterSpec& cluster, const ClusterSpec& group);

}  // namespace costmodel
