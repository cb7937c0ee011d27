// One micro-batch size in the search over meshes: price the stages, compute the lower bound of all
// plans, and if that admits an improvement, slice the layers into stages and simulate the plans.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "costmodel/scenario/scenario.hpp"
#include "planner/search/best_plans.hpp"
#include "planner/search/stage_options.hpp"

namespace planner {

// The orders of the device groups along the pipeline to try.
using GroupOrders = std::vector<std::vector<int>>;

struct MeshBatch {
  std::vector<Ranked> plans;  // valid, fitting and simulated; unique, in the order found
  std::string reason;         // why the first slicing without a result had none
  costmodel::Seconds bound;   // of all plans of this size; infinite when there is none
  std::uint64_t priced = 0;   // stages priced
  std::uint64_t sliced = 0;   // exact slicings
  std::uint64_t simulated = 0;
  bool ruled_out = false;  // pruned by its bound, before slicing
  bool expired = false;
};

// `sequences` per micro-batch, over all replicas. `least` is a lower bound for any plan. run() does
// not slice when the bound exceeds `worst`. After `expired` returns true, nothing more is priced.
class MeshBatchSearch {
 public:
  MeshBatchSearch(const costmodel::Scenario& scenario, std::int64_t sequences,
                  costmodel::Seconds least, const std::function<bool()>& expired);
  MeshBatch run(const GroupOrders& orders, costmodel::Seconds worst);

 private:
  bool out_of_time();
  bool price(std::size_t groups);
  void cut(const GroupOrders& orders);
  Slicing sliced(const std::vector<int>& order, int least);
  bool allows(const Slicing& cut, int least) const;
  costmodel::ParallelPlan plan_of(const Slicing& cut) const;
  void start(const costmodel::ParallelPlan& plan);

  const costmodel::Scenario* s_;
  std::int64_t sequences_;
  const std::function<bool()>* expired_;
  bool sequence_parallel_;
  costmodel::Evaluator evaluator_;
  std::vector<StageChoice> choices_;
  std::vector<SlicingProblem> problems_;  // by group
  MeshBatch result_;
};

}  // namespace planner
