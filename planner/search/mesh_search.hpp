// The best plans whose stages differ, or whose devices do: for every number of sequences a
// micro-batch may hold and every order of the groups along the pipeline, layers are cut into stages
// and stages put on submeshes by stage slicing (exact for its objective), and the result is
// simulated; the best are then improved as long as their simulated iteration gets shorter: a layer
// moved to another stage, a stage cut otherwise on its devices, fewer layers recomputed.
//
// A dp and micro_batch that the plan fixes are those of every stage, as tp, cp, cp_comm, ep, etp,
// recompute and zero are.
//
// Not searched: virtual stages and schedules but 1F1B; tensor groups wider than a node; idle
// devices; groups that alternate along the pipeline; orders of more than four groups but theirs and
// its reverse; replicas of a stage that take unequal shares. Groups that are replicas of the model
// instead and take unequal shares of the batch are searched beside it (replica_search). Improvement
// is a local search. The bound is the least time of devices that stages add up to (mesh_bound), and
// where time ran out before a size of a micro-batch was priced, the model's FLOPs at the peak of
// all devices.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/scenario/scenario.hpp"
#include "planner/search/replica_search.hpp"

namespace planner {

struct MeshSearch {
  std::vector<costmodel::Estimate> plans;  // best first; empty when there is none
  std::string reason;                      // why there is none
  costmodel::Seconds lower_bound;          // no plan that this search may find is faster
  std::uint64_t orders = 0;                // of the groups
  std::uint64_t batches = 0;               // sizes of a micro-batch
  std::uint64_t ruled_out = 0;             // of these, by their bound, before anything was cut
  std::uint64_t priced = 0;                // stages, on a submesh in one way
  std::uint64_t sliced = 0;                // cut exactly
  std::uint64_t simulated = 0;             // iterations
  std::uint64_t improved = 0;              // plans improved by simulation
  bool expired = false;
  std::optional<ReplicaSearch> replicas;  // of several groups
};

// Whether the scenario fixes nothing that this search cannot hold fixed.
bool can_search_meshes(const costmodel::Scenario& scenario);

// Throws ConfigError where it cannot. The same answer for any number of threads, unless time runs
// out: `expired`, called from all of them, says when.
MeshSearch search_meshes(const costmodel::Scenario& scenario, int threads = 1,
                         const std::function<bool()>& expired = {});

}  // namespace planner
