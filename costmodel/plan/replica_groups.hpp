// Groups of different devices that hold replicas of the model, as a plan says them.
//
// Each group is a plan by itself: its own sizes on its own devices, for its share of the batch. The
// groups' shares follow one another in the batch, and so do their ranks and their pipeline ranks.
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
  ParallelPlan plan;               // of the group's devices by themselves
  std::string group;               // empty where the plan has no groups
  std::int64_t micro_batches = 1;  // of each of its plan.dp replicas
  // What the parts before it have.
  std::int64_t first_sequence = 0, first_rank = 0;
  int first_stage = 0;  // of pipeline ranks

  std::int64_t sequences() const { return plan.dp * plan.micro_batch * micro_batches; }
};

// Makes the plan's own sizes those of its groups: pp and dp are sums, the others the first group's;
// sequence_parallel stays where any group has tensor ranks.
void join_replicas(ParallelPlan& plan);

// The groups' parts; of a plan without any the whole of it.
std::vector<ReplicaPart> replica_parts(const ParallelPlan& plan, std::int64_t global_batch);

// The part that has a rank, or a pipeline rank.
const ReplicaPart& part_of_rank(const std::vector<ReplicaPart>& parts, std::int64_t rank);
const ReplicaPart& part_of_stage(const std::vector<ReplicaPart>& parts, int pipeline_rank);

// The rules of such plans: those of every group's part by itself, and that together they make up
// the cluster and the batch.
void check_replicas(const ParallelPlan& plan, const ModelSpec& model, const ClusterSpec& cluster,
                    const TrainingSpec& training, Rules& rules);

// "h100: t 1 · p 2 · d 4 · b 2 · m 8 · recompute none · ZeRO 0; a100: ...".
std::string replicas_text(const ParallelPlan& plan);

}  // namespace costmodel
