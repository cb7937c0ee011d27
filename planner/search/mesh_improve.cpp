#include "planner/search/mesh_improve.hpp"

#include <algorithm>
#include <cstdlib>

#include "costmodel/estimate/evaluator.hpp"
#include "planner/search/search_space.hpp"
#include "planner/search/stage_options.hpp"

namespace planner {

using namespace costmodel;

bool fits(const PlanCost& cost, double margin) {
  for (std::size_t r = 0; r < cost.ranks.size(); ++r)
    if (cost.ranks[r].memory.total() > cost.capacity[r] * (1 - margin)) return false;
  return true;
}

// Keeps a plan that is valid, fits, and is faster than the best so far by more than rounding.
bool MeshImprover::consider(const ParallelPlan& plan) {
  if (!is_valid(plan, s_->model, s_->cluster, s_->training)) return false;
  const PlanCost& cost = evaluator_->cost(plan);
  if (!fits(cost, s_->search.memory_margin)) return false;
  if (cost.bound.iteration >= best_.time) return true;
  const Bytes peak = cost.peak;
  ++simulated_;
  const Seconds time = evaluator_->iteration_time(plan);
  if (time.value < best_.time.value * (1 - 1e-9)) best_ = {time, peak, best_.order, plan};
  return true;
}

namespace {

// Above this number of stages, only neighbours exchange layers, and all stages with identical
// sharding are changed together.
constexpr int few_stages = 8;

}  // namespace

bool MeshImprover::out_of_time() const { return *expired_ && (*expired_)(); }

void MeshImprover::move_layers() {
  ParallelPlan plan = from_.plan;
  const int stages = plan.pp;
  for (int a = 0; a < stages && !out_of_time(); ++a) {
    for (int b = 0; b < stages; ++b) {
      if (a == b || (stages > few_stages && std::abs(a - b) > 1)) continue;
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

// Tries the plan in which stage k has the sharding `then`; with many stages, every stage with the
// same sharding as stage k.
void MeshImprover::cut_otherwise(std::size_t k, const StagePlan& then) {
  ParallelPlan plan = from_.plan;
  const StagePlan now = plan.stages[k];
  if (then == now) return;
  if (plan.pp > few_stages) {
    std::ranges::replace(plan.stages, now, then);
  } else {
    plan.stages[k] = then;
  }
  plan.dp = 1;
  for (const StagePlan& stage : plan.stages) plan.dp = std::max(plan.dp, stage.dp);
  plan.micro_batch = from_.plan.dp * from_.plan.micro_batch / plan.dp;
  consider(plan);
}

namespace {

std::int64_t node_of(const ClusterSpec& cluster, const std::string& group) {
  for (const ClusterSpec& devices : cluster.groups)
    if (devices.name == group) return devices.devices_per_node;
  return cluster.devices_per_node;
}

}  // namespace

// A tensor group stays within a node, as mesh_bound assumes.
void MeshImprover::cut_stages() {
  const auto& stages = from_.plan.stages;
  const std::int64_t sequences = from_.plan.dp * from_.plan.micro_batch;
  for (std::size_t k = 0; k < stages.size() && !out_of_time(); ++k) {
    const StagePlan& now = stages[k];
    const auto own = stages.begin() + static_cast<std::ptrdiff_t>(k);
    if (from_.plan.pp > few_stages && std::find(stages.begin(), own, now) != own) continue;
    const int devices = now.tp * now.cp * now.dp;
    for (const std::int64_t tp : divisors(devices)) {
      const bool narrow = tp <= node_of(s_->cluster, now.group) &&
                          (s_->search.max_tp == 0 || tp <= s_->search.max_tp);
      if (!narrow || (s_->plan.tp && *s_->plan.tp != tp)) continue;
      for (StagePlan then : sizes_offered(*s_, devices, static_cast<int>(tp), sequences)) {
        if (out_of_time()) return;
        then.group = now.group;
        cut_alike(k, then);
      }
    }
  }
}

// With every recomputation and ZeRO stage that is offered.
void MeshImprover::cut_alike(std::size_t k, StagePlan then) {
  for (const auto& recompute : recompute_offered(*s_)) {
    for (const int zero : zero_offered(*s_, std::int64_t{then.dp} * then.cp)) {
      then.recompute = recompute;
      then.zero = zero;
      cut_otherwise(k, then);
    }
  }
}

void MeshImprover::keep_more() {
  if (s_->plan.recompute) return;
  for (std::size_t k = 0; k < from_.plan.stages.size() && !out_of_time(); ++k) {
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
  } while (best_.time < from_.time && !out_of_time());
  return best_;
}

}  // namespace planner
