#include "planner/mesh_improve.hpp"

#include <algorithm>
#include <cstdlib>

#include "planner/search_space.hpp"
#include "planner/stage_options.hpp"

namespace planner {

using costmodel::ParallelPlan;
using costmodel::PlanCost;
using costmodel::Recomputation;
using costmodel::StagePlan;

bool fits(const PlanCost& cost, double margin) {
  for (std::size_t r = 0; r < cost.memory.size(); ++r)
    if (cost.memory[r].total() > cost.capacity[r] * (1 - margin)) return false;
  return true;
}

// Keeps a plan that is valid, fits and is faster than the best so far, by more than rounding.
bool MeshImprover::consider(const ParallelPlan& plan) {
  if (!is_valid(plan, s_->model, s_->cluster, s_->training)) return false;
  const PlanCost& cost = evaluator_->cost(plan);
  if (!fits(cost, s_->search.memory_margin)) return false;
  if (cost.lower_bound >= best_.time) return true;
  const costmodel::Bytes peak = cost.peak;
  ++simulated_;
  const costmodel::Seconds time = evaluator_->iteration_time(plan);
  if (time.value < best_.time.value * (1 - 1e-9)) best_ = {time, peak, best_.order, plan};
  return true;
}

void MeshImprover::move_layers() {
  ParallelPlan plan = from_.plan;
  const int stages = plan.pp;
  constexpr int few = 8;  // of more stages only neighbours exchange layers
  for (int a = 0; a < stages; ++a) {
    for (int b = 0; b < stages; ++b) {
      if (a == b || (stages > few && std::abs(a - b) > 1)) continue;
      auto& giver = plan.stage_layers[static_cast<std::size_t>(a)];
      auto& taker = plan.stage_layers[static_cast<std::size_t>(b)];
      const bool end = a == 0 || a == stages - 1;
      if (giver <= (end ? 0 : 1)) continue;
      --giver;
      ++taker;
      consider(plan);
      ++giver;
      --taker;
    }
  }
}

void MeshImprover::cut_stages() {
  const std::int64_t sequences = from_.plan.dp * from_.plan.micro_batch;
  for (std::size_t k = 0; k < from_.plan.stages.size(); ++k) {
    const StagePlan& now = from_.plan.stages[k];
    const std::int64_t ranks = std::int64_t{now.tp} * now.dp;
    for (const std::int64_t tp : divisors(ranks)) {
      const std::int64_t dp = ranks / tp;
      const bool narrow = s_->search.max_tp == 0 || tp <= s_->search.max_tp;
      const std::int64_t most = s_->search.max_micro_batch;
      if (sequences % dp != 0 || !narrow || (most > 0 && sequences / dp > most) ||
          (s_->plan.tp && *s_->plan.tp != tp) || (s_->plan.dp && *s_->plan.dp != dp))
        continue;
      for (const auto& recompute : recompute_offered(*s_)) {
        for (const int zero : zero_offered(*s_, dp * from_.plan.cp)) {
          ParallelPlan plan = from_.plan;
          plan.stages[k] = {static_cast<int>(tp), static_cast<int>(dp), recompute, zero, now.group};
          if (plan.stages[k] == now) continue;
          plan.dp = 1;
          for (const StagePlan& stage : plan.stages) plan.dp = std::max(plan.dp, stage.dp);
          plan.micro_batch = sequences / plan.dp;
          consider(plan);
        }
      }
    }
  }
}

void MeshImprover::keep_more() {
  if (s_->plan.recompute) return;
  for (std::size_t k = 0; k < from_.plan.stages.size(); ++k) {
    const auto again = from_.plan.stages[k].recompute;
    if (again.granularity != Recomputation::full) continue;
    const int all = from_.plan.stage_layers[k];
    const int most = again.layers > 0 ? std::min(again.layers, all) : all;
    ParallelPlan plan = from_.plan;
    for (int layers = 1; layers < most; ++layers) {
      plan.stages[k].recompute.layers = layers;
      if (consider(plan)) break;
    }
  }
}

Ranked MeshImprover::improved(Ranked start) {
  best_ = from_ = std::move(start);
  do {
    from_ = best_;
    move_layers();
    cut_stages();
    keep_more();
  } while (best_.time < from_.time && !(*expired_ && (*expired_)()));
  return best_;
}

}  // namespace planner
