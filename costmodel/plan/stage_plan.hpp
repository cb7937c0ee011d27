// Heterogeneous stages and their submeshes.
//
// Evaluator prices such a stage as one of a pipeline of identical stages on devices of its kind.
// Every stage gets a submesh: devices of one group of the cluster, either part of a node or
// complete nodes (Zheng et al. 2022, arXiv:2201.12023, section 5.2). The largest are placed first,
// so that submeshes of 1, 2, 4, ... devices and of complete nodes always pack.
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
  ParallelPlan plan;       // of a pipeline in which every stage is identical to this one
  int group = 0;           // index of the cluster's group
  std::string name;        // of the group; empty without groups
  std::int64_t first = 0;  // its first device, as an index into the group's
  std::int64_t devices = 0;
};

// Whether stages are priced individually: the plan lists them, or the cluster has groups.
inline bool by_stage(const ParallelPlan& plan, const ClusterSpec& cluster) {
  return !plan.stages.empty() || !cluster.groups.empty();
}

// The stages of a valid plan, first to last.
std::vector<StageMesh> stage_meshes(const ParallelPlan& plan, const ClusterSpec& cluster);

// The uniform plan in which every stage has stage k's sizes, exchange of keys and values,
// micro-batch, recomputation and ZeRO stage.
ParallelPlan stage_plan(const ParallelPlan& plan, int stage);

// What a broken rule is said of: the key `alike` where no stage says sizes of its own, else
// `stages`; and which of those it is.
const char* stage_key(const ParallelPlan& plan, const char* alike);
void blame_stage(const ParallelPlan& plan, int stage, Violation& fault);

// Checks the rules that only plans with submeshes have; the rules of each stage as a plan of its
// own come afterwards. Returns false when those cannot be checked.
bool check_submeshes(const ParallelPlan& plan, const ClusterSpec& cluster, Rules& rules);

}  // namespace costmodel
