// Reads the `plan` map of a scenario, and settles what follows from the rest of it.
#pragma once

#include "costmodel/config/key_text.hpp"
#include "costmodel/scenario/scenario.hpp"

namespace costmodel {

// A map, or `auto`: every key that has a search is `auto`, but for those beside `base: auto`.
// Throws ConfigError.
PlanRequest read_plan(const Value& written);

// Makes stage_layers of a split rank. Throws ConfigError where no such stages are.
void settle_split(const ModelSpec& model, PlanRequest& plan);

// Fills plan.stages from a request that lists stages; a key missing in a stage is taken from the
// plan. A plan without its own dp takes the largest dp of its stages, and micro_batch counts per
// replica of that stage. Throws ConfigError.
void settle_stages(const PlanRequest& request, ParallelPlan& plan);

// Fills plan.replica_groups, in the order of the cluster's groups, from a request that lists
// replicas; a missing key is taken from the plan, a missing dp follows from the group's devices.
// The plan's own pp and dp become sums, its other sizes those of the first group. Throws
// ConfigError.
void settle_replicas(const PlanRequest& request, const ClusterSpec& cluster, ParallelPlan& plan);

}  // namespace costmodel
