// Plans whose stages differ, improved step by step as long as the simulated iteration gets shorter.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/scenario/scenario.hpp"
#include "planner/search/best_plans.hpp"

namespace planner {

// Every stage within the memory of its own devices, less the margin.
bool fits(const costmodel::PlanCost& cost, double margin);

// The steps: one layer from a stage to another; a stage cut otherwise on its own devices (tensor,
// context, expert and data parallel size, recomputation, ZeRO stage); of a stage that recomputes
// all its layers, only as many as it must.
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
