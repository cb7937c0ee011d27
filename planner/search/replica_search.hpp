// The best shares of the batch where the groups of a mixed cluster hold replicas of the model
// instead of stages of one: for every group a tensor, pipeline and data parallel size on all of its
// devices, a micro-batch that divides the batch, recomputation and ZeRO stage, and how many
// micro-batches its replicas take.
//
// Exact for that space under the cost model: for every share of a group its plans are cut down to
// those that no other beats in pipeline, optimizer and gather; shares are added up group by group.
// Not searched: virtual stages, schedules but 1f1b, context and expert parallelism but what the
// scenario fixes, idle devices, pipelines through several groups.
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
  std::vector<double> used;                 // of the fullest device's memory, by group
  std::uint64_t evaluated = 0, simulated = 0;
  bool expired = false;
};

ReplicaSearch search_replicas(const costmodel::Scenario& scenario,
                              const std::function<bool()>& expired = {});

// One a line: each group's share, the iteration, and against `pipeline`, the best through all
// groups (0: there is none).
std::vector<std::string> replica_sentences(const ReplicaSearch& found,
                                           const costmodel::Scenario& scenario,
                                           costmodel::Seconds pipeline);

}  // namespace planner
