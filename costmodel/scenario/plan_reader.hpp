// A scenario's `plan` map, read and written.
#pragma once

#include "costmodel/scenario/scenario.hpp"

namespace costmodel {

// Throws ConfigError.
PlanRequest read_plan(const Value& map);

// The stages of a request that lists them, with what they leave out as the plan has it; without a
// dp of its own the plan takes that of its widest stage, whose replicas micro_batch is for. Throws
// ConfigError.
void settle_stages(const PlanRequest& request, ParallelPlan& plan);

// The groups' replicas of a request that lists them, in the order of the cluster's groups, with
// what they leave out as the plan has it; a missing dp follows from the group's devices. Of the
// plan's own sizes, pp and dp are sums then, and the others the first group's.
void settle_replicas(const PlanRequest& request, const ClusterSpec& cluster, ParallelPlan& plan);

}  // namespace costmodel
