// Improves plans with heterogeneous stages by local search on the simulated iteration time.
#pragma once

#include <cstdint>
#include <functional>

#include "costmodel/estimate/plan_cost.hpp"
#include "costmodel/scenario/scenario.hpp"
#include "planner/search/best_plans.hpp"

namespace costmodel {
class Evaluator;
}  // namespace costmodel

namespace planner {

// Whether every stage fits in its own devices' memory less the margin.
bool fits(const costmodel::PlanCost& cost, double margin);

// The moves: one layer from a stage to another; another sharding of a stage on its own devices
// (tensor, context, expert and data parallel size, recomputation, ZeRO stage); fewer recomputed
// layers in a stage that recomputes all of them.
class MeshImprover {
 public:
  MeshImprover(const costmodel::Scenario& scenario, costmodel::Evaluator& evaluator,
               const std::function<bool()>& expired)
      : s_(&scenario), evaluator_(&evaluator), expired_(&expired) {}

  Ranked improved(Ranked start);
  std::uint64_t simulated() const { return simulated_; }

 private:
  bool consider(const costmodel::ParallelPlan& plan);
  bool out_of_time() const;
  void move_layers();
  void cut_otherwise(std::size_t k, const costmodel::StagePlan& then);
  void cut_alike(std::size_t k, costmodel::StagePlan then);
  void cut_stages();
  void keep_more();

  const costmodel::Scenario* s_;
  costmodel::Evaluator* evaluator_;
  const std::function<bool()>* expired_;
  Ranked from_, best_;
  std::uint64_t simulated_ = 0;
};

}  // namespace planner
