// One micro-batch size in the search over meshes: price the stages, compute a lower bound of all
// plans, and if that admits an improvement, cut the layers into stages and simulate the plans.
//
// A stage is quicker in a longer pipeline, where its devices wait more. So first all pipelines are
// searched together, with the times of the longest; where the bound then lies below the best plan,
// those of few and those of many stages apart, and so on to a single number of stages.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "costmodel/scenario/scenario.hpp"
#include "planner/search/best_plans.hpp"
#include "planner/search/mesh_search.hpp"
#include "planner/search/mesh_transfer.hpp"
#include "planner/search/stage_options.hpp"
#include "planner/solvers/stage_slicing.hpp"
#include "planner/solvers/submesh_cut.hpp"

namespace planner {

// The orders of the device groups along the pipeline to try.
using GroupOrders = std::vector<std::vector<int>>;

struct MeshBatch {
  std::vector<Ranked> plans;  // valid, fitting and simulated; unique, in the order found
  std::string reason;         // why the first order without a cut had none
  costmodel::Seconds bound;   // of all plans of this size; infinite when there is none
  LeastBound held_by;         // which of them
  std::uint64_t priced = 0;   // stages priced
  std::uint64_t sliced = 0;   // cuts
  std::uint64_t simulated = 0;
  bool ruled_out = false;  // pruned by the bounds of its first cuts
  bool expired = false;
};

// `sequences` per micro-batch, over all replicas; only plans below `below` are looked for. After
// `expired` returns true, nothing more is priced.
class MeshBatchSearch {
 public:
  MeshBatchSearch(const costmodel::Scenario& scenario, std::int64_t sequences,
                  const std::function<bool()>& expired, costmodel::Seconds below);
  MeshBatchSearch(const MeshBatchSearch&) = delete;
  MeshBatchSearch& operator=(const MeshBatchSearch&) = delete;

  // Prices, and cuts once; a lower bound of any plan of this size. At least `least`.
  costmodel::Seconds begin(const GroupOrders& orders, costmodel::Seconds least);
  costmodel::Seconds best() const { return best_; }  // the time of its best plan, or `below`
  // Does not go on where the bound is not below `best`, the time of a plan.
  MeshBatch run(costmodel::Seconds best);

 private:
  struct StageCounts {
    int least = 1, most = 1;
  };
  // Pipelines of some numbers of stages through the groups in some order.
  struct Branch {
    costmodel::Seconds bound;
    StageCounts stages;
    std::size_t order = 0;
  };
  using Problems = std::vector<SlicingProblem>;  // by group

  bool out_of_time();
  bool price();
  costmodel::Seconds bound_of_open() const;
  void close(const Branch& branch);
  bool settle(Branch branch);
  bool depends_on(const StageCounts& stages) const;
  Problems in_pipelines(const Branch& branch) const;
  SubmeshProblem problem_of(const Problems& groups, const Branch& branch) const;
  void start_anyhow(const Branch& branch);
  costmodel::ParallelPlan plan_of(const std::vector<SlicedStage>& stages) const;
  void start(const costmodel::ParallelPlan& plan);

  const costmodel::Scenario* s_;
  std::int64_t sequences_;
  const std::function<bool()>* expired_;
  bool sequence_parallel_;
  costmodel::Evaluator evaluator_;
  MeshTransfer transfer_;
  std::vector<StageChoice> choices_;
  Problems problems_;
  GroupOrders orders_;
  std::vector<Branch> open_;
  costmodel::Seconds best_;  // time of a plan
  std::uint64_t effort_ = 0;
  MeshBatch result_;
};

// A lower bound on the iteration of any pipeline of stages on submeshes, for one micro-batch size.
// `groups`: one problem per group of devices, from StageOptions. Every micro-batch occupies each
// stage's devices for the stage's time, so an iteration takes at least the minimal device-seconds
// of stages that cover all layers, spread evenly over the devices; with several kinds of devices
// they are weighted by peak. It knows no bubble, but costs next to nothing: best_submesh_cut begins
// with it.
costmodel::Seconds mesh_bound(const costmodel::Scenario& scenario,
                              const std::vector<SlicingProblem>& groups);

}  // namespace planner
