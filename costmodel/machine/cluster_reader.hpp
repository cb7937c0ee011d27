// A cluster's file, configs/clusters, or map.
#pragma once

#include <string>

#include "costmodel/config/value.hpp"
#include "costmodel/machine/cluster_spec.hpp"

namespace costmodel {

// `device` must already be resolved. When `devices` departs from the tiers (a scenario's override),
// the last tier is stretched or tiers are cut to fit, and `assumed` says so.
ClusterSpec read_cluster(const Value& map, const std::string& name, DeviceSpec device);

// One entry of `tiers`.
Tier read_tier(const Value& value);

// What `straggler` says: ClusterSpec::straggler_per_doubling.
double read_straggler(const Value& value);

}  // namespace costmodel
