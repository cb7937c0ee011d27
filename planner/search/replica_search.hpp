// The best shares of the batch when the groups of a mixed cluster hold replicas of the model
// instead of pipeline stages. For every group it chooses tensor, pipeline and data parallel size on
// all of its devices, a micro-batch size that divides the batch, recomputation, ZeRO stage and the
// number of micro-batches per replica.
//
// Exact for that space under the cost model: for every share of a group, only plans that are
// Pareto-optimal in pipeline, optimizer and gather time are kept; shares are combined group by
// group. Not searched: virtual stages, schedules other than 1f1b, context and expert parallelism
// beyond what the scenario fixes, idle devices, pipelines through several groups.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "costmodel/estimate/replica_cost.hpp"
#include "costmodel/scenario/scenario.hpp"

namespace planner {

struct ReplicaSearch {
  std::vector<costmodel::ReplicaShare> shares;  // by group; empty when there are none
  std::string reason;                           // why there are none
  costmodel::Seconds iteration, across;
  std::vector<costmodel::ReplicaEnd> ends;  // by group
  std::vector<double> used;  // by group: used fraction of the fullest device's memory
  std::uint64_t evaluated = 0, simulated = 0;
  bool expired = false;
};

ReplicaSearch search_replicas(const costmodel::Scenario& scenario,
                              const std::function<bool()>& expired = {});

// One sentence per line: each group's share, the iteration, and the comparison with `pipeline`, the
// best pipeline through all groups (0: there is none).
std::vector<std::string> replica_sentences(const ReplicaSearch& found,
                                           const costmodel::Scenario& scenario,
                                           costmodel::Seconds pipeline);

}  // namespace planner
