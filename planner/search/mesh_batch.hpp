// One size of a micro-batch of the search over meshes: stages are priced, what no plan of it takes
// less than is found, and where that leaves room, layers are cut into stages and the plans
// simulated.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "costmodel/scenario/scenario.hpp"
#include "planner/search/best_plans.hpp"
#include "planner/search/stage_options.hpp"

namespace planner {

// The groups of devices along the pipeline, each order of them that is tried.
using GroupOrders = std::vector<std::vector<int>>;

struct MeshBatch {
  std::vector<Ranked> plans;  // valid, in memory and simulated; each once, as they were found
  std::string reason;         // of the first cut that gave none
  costmodel::Seconds bound;   // no plan of this size is faster; infinite when there is none
  std::uint64_t priced = 0;   // stages
  std::uint64_t sliced = 0;   // cut exactly
  std::uint64_t simulated = 0;
  bool ruled_out = false;  // by its bound, before it was cut
  bool expired = false;
};

// `sequences` of a micro-batch, over all replicas. Not cut when its plans take longer than `worst`.
// `least` is a bound that holds for any plan. Once `expired` says yes, nothing more is priced.
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
