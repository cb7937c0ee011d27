// The best plans with heterogeneous stages or devices. For every micro-batch size and every order
// of the groups along the pipeline, layers are cut into stages on submeshes such that the pipeline
// may end first (submesh_cut), and the result is simulated. The best plans are then improved by
// local search on the simulated iteration: move a layer to another stage, change a stage's sharding
// on its devices, recompute fewer layers.
//
// A dp or micro_batch fixed in the plan holds for every stage, as do tp, cp, cp_comm, ep, etp,
// recompute and zero.
//
// Not searched: virtual stages and schedules other than 1F1B; tensor groups wider than a node; idle
// devices, stages that hold nothing; groups that alternate along the pipeline; with more than four
// groups, orders other than the given one and its reverse; unequal shares among the replicas of a
// stage. Groups that hold replicas of the model with unequal shares of the batch are searched
// separately (replica_search). The lower bound is the least of all cuts (mesh_batch), or, for
// micro-batch sizes not priced before time ran out, the model's FLOPs at the peak of all devices.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "costmodel/estimate/estimate.hpp"
#include "costmodel/scenario/scenario.hpp"
#include "planner/search/replica_search.hpp"
#include "planner/solvers/tolerances.hpp"

namespace planner {

// The pipelines whose bound is the least: what keeps a gap open.
struct LeastBound {
  std::int64_t sequences = 0;  // of a micro-batch; 0: none was bounded by a cut
  int least_stages = 1, most_stages = 1;
  std::vector<int> order;  // of the groups
};

struct MeshSearch {
  std::vector<costmodel::Estimate> plans;  // of each row, best first; empty when there is none
  std::string reason;                      // why there is none
  costmodel::Seconds lower_bound;          // of all plans in this search's space
  LeastBound held_by;                      // the pipelines whose bound that is
  std::uint64_t orders = 0;                // orders of the groups
  std::uint64_t batches = 0;               // micro-batch sizes
  std::uint64_t ruled_out = 0;             // those pruned by their first bounds
  std::uint64_t priced = 0;                // (stage, submesh, sharding) combinations
  std::uint64_t sliced = 0;                // cuts
  std::uint64_t simulated = 0;             // iterations
  std::uint64_t improved = 0;              // plans improved by local search
  bool expired = false;
  std::string interrupted;                // by which signal, told by the command
  std::optional<ReplicaSearch> replicas;  // with several groups only
  // The simplest of all plans found that are within search.simpler_within of the first.
  std::optional<costmodel::ParallelPlan> simplest = {};
  std::optional<costmodel::Estimate> fastest = {};  // where run_strategies() chose a simpler one
};

// Whether this search can respect every key that the scenario fixes.
bool can_search_meshes(const costmodel::Scenario& scenario);

// Only plans below `below`, the time of another plan, are looked for. Throws ConfigError unless
// can_search_meshes(). The result does not depend on the number of threads, unless time runs out.
// `expired` is called from all threads.
MeshSearch search_meshes(const costmodel::Scenario& scenario, int threads = 1,
                         const std::function<bool()>& expired = {},
                         costmodel::Seconds below = costmodel::Seconds(infinity));

}  // namespace planner
