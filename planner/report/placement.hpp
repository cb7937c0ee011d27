// The placement of the ranks of a plan on devices.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "costmodel/machine/cluster_spec.hpp"
#include "costmodel/plan/parallel_plan.hpp"

namespace planner {

struct PlacedRank {
  std::int64_t rank = 0;
  int stage = 0, tp = 0, cp = 0, dp = 0;  // coordinates
  int ep = 0, etp = 0;                    // expert coordinates
  std::string group;                      // group of the cluster; empty with one kind of device
  std::int64_t node = 0, device = 0;      // node within the group, device within the node
};

// The placement of a valid plan, by rank. Ranks are numbered by the plan's rank_order; with
// heterogeneous stages stage by stage, within each tp fastest, then cp, then dp; several pipelines
// one after the other, with coordinates relative to the pipeline.
std::vector<PlacedRank> placement(const costmodel::ParallelPlan& plan,
                                  const costmodel::ClusterSpec& cluster);

}  // namespace planner
