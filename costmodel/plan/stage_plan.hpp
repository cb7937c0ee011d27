// Stages that differ, and where their devices are.
//
// A stage is priced as one of a pipeline of stages like it, on the devices of its own kind: see
// Evaluator. Every stage is given a submesh: so many devices of one group of the cluster, a part of
// one node or whole nodes (Zheng et al. 2022, arXiv:2201.12023, section 5.2), the largest first, so
// that submeshes of 1, 2, 4, ... devices and of nodes always pack.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "costmodel/machine/cluster_spec.hpp"
#include "costmodel/model/model_spec.hpp"
#include "costmodel/plan/parallel_plan.hpp"
#include "costmodel/plan/plan_rules.hpp"

namespace costmodel {

struct StageMesh {
  ParallelPlan plan;       // of a pipeline whose stages are all like this one
  int group = 0;           // of the cluster's groups; 0 where it has none
  std::string name;        // of the group; empty where there is none
  std::int64_t first = 0;  // of its devices, in the order of the group's
  std::int64_t devices = 0;
};

// Whether a plan's stages are priced one by one: where they differ, or the devices do.
inline bool by_stage(const ParallelPlan& plan, const ClusterSpec& cluster) {
  return !plan.stages.empty() || !cluster.groups.empty();
}

// The stages of a valid plan, first to last.
std::vector<StageMesh> stage_meshes(const ParallelPlan& plan, const ClusterSpec& cluster);

// Stage k by itself: its own sizes, exchange of keys and values, micro-batch, recomputation and
// ZeRO stage, for all stages.
ParallelPlan stage_plan(const ParallelPlan& plan, int stage);

// The devices of a group, or of a cluster of one kind.
const ClusterSpec& group_of(const ClusterSpec& cluster, int group);

// The rules of such plans that plain ones have not; then those of every stage by itself are asked.
// False where they make no sense to ask.
bool check_submeshes(const ParallelPlan& plan, const ClusterSpec& cluster, Rules& rules);

}  // namespace costmodel
