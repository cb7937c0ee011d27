// Plans in which each group of a mixed cluster holds replicas of the model.
// Each group is a complete plan on its own devices, with its share of the batch (plan/pipeline).
#pragma once

#include <string>

#include "costmodel/machine/cluster_spec.hpp"
#include "costmodel/model/model_spec.hpp"
#include "costmodel/plan/parallel_plan.hpp"
#include "costmodel/plan/plan_rules.hpp"

namespace costmodel {

// Sets the plan's own sizes from its groups: pp and dp are sums, the others those of the first
// group. sequence_parallel is kept only if some group has tensor parallelism.
void join_replicas(ParallelPlan& plan);

// Checks such a plan: each group's pipeline as a plan of its own, and that the groups together use
// the entire cluster and the entire batch.
void check_replicas(const ParallelPlan& plan, const ModelSpec& model, const ClusterSpec& cluster,
                    const TrainingSpec& training, Rules& rules);

// "h100: t 1 · p 2 · d 4 · b 2 · m 8 · recompute none · ZeRO 0; a100: ...".
std::string replicas_text(const ParallelPlan& plan);

}  // namespace costmodel
