// Plans in which each group of a mixed cluster holds replicas of the model.
//
// Each group is a complete plan on its own devices, with its share of the batch. Shares of the
// batch, ranks and pipeline ranks are numbered group after group.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "costmodel/machine/cluster_spec.hpp"
#include "costmodel/model/model_spec.hpp"
#include "costmodel/plan/parallel_plan.hpp"
#include "costmodel/plan/plan_rules.hpp"

namespace costmodel {

struct ReplicaPart {
  ParallelPlan plan;               // of this group's devices only
  std::string group;               // empty for a plan without groups
  std::int64_t micro_batches = 1;  // per replica; it has plan.dp
  // Offsets: sums over the parts before this one.
  std::int64_t first_sequence = 0, first_rank = 0;
  int first_stage = 0;  // in pipeline ranks

  std::int64_t sequences() const { return plan.dp * plan.micro_batch * micro_batches; }
};

// Sets the plan's own sizes from its groups: pp and dp are sums, the others those of the first
// group. sequence_parallel is kept only if some group has tensor parallelism.
void join_replicas(ParallelPlan& plan);

// One part per group; for a plan without groups, one part with the entire plan.
std::vector<ReplicaPart> replica_parts(const ParallelPlan& plan, std::int64_t global_batch);

// The part that contains a rank, or a pipeline rank.
const ReplicaPart& part_of_rank(const std::vector<ReplicaPart>& parts, std::int64_t rank);
const ReplicaPart& part_of_stage(const std::vector<ReplicaPart>& parts, int pipeline_rank);

// Checks such a plan: each group's part as a plan of its own, and that the groups together use the
// entire cluster and the entire batch.
void check_replicas(const ParallelPlan& plan, const ModelSpec& model, const ClusterSpec& cluster,
                    const TrainingSpec& training, Rules& rules);

// "h100: t 1 · p 2 · d 4 · b 2 · m 8 · recompute none · ZeRO 0; a100: ...".
std::string replicas_text(const ParallelPlan& plan);

}  // namespace costmodel
