// Where each rank of a plan runs.
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
  int ep = 0, etp = 0;                    // of the experts that it holds
  std::string group;                      // of the cluster; empty where devices are of one kind
  std::int64_t node = 0, device = 0;      // within the group, within the node
};

// Of a valid plan, by rank. Ranks are numbered as the plan's rank_order has it; where stages differ
// stage by stage, in each tp fastest, then cp, then dp; where groups hold replicas group by group,
// with the coordinates that a rank has within its own.
std::vector<PlacedRank> placement(const costmodel::ParallelPlan& plan,
                                  const costmodel::ClusterSpec& cluster);

}  // namespace planner
