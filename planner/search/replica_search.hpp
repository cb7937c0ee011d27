// The best shares of the batch when the groups of a mixed cluster hold replicas of the model
// instead of pipeline stages. For every group it chooses tensor, pipeline and data parallel size on
// all of its devices, a micro-batch size, recomputation, ZeRO stage and the number of micro-batches
// per replica.
//
// Exact for that space under the cost model. A plan's time grows with its micro-batches, so a limit
// on the iteration gives every group a largest share, and by the batch a smallest one. Of the
// shares between, those that are Pareto-optimal in pipeline, optimizer and gather time are
// combined group by group; the limit is raised until the best iteration lies within it. The work
// does not grow with the batch. Not searched: virtual stages, schedules other than 1f1b, context
// and expert parallelism beyond what the scenario fixes, idle devices, pipelines through several
// groups, micro-batches of more than 256 sequences unless the scenario allows them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "costmodel/estimate/replica_share.hpp"
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
