#include "planner/search/mesh_batch.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "planner/search/mesh_bound.hpp"
#include "planner/search/mesh_improve.hpp"
#include "planner/solvers/group_slicing.hpp"

namespace planner {

using costmodel::ParallelPlan;
using costmodel::Scenario;
using costmodel::Seconds;

namespace {

// Options with at least `least` devices, or with all devices of a smaller group.
SlicingProblem of_devices(SlicingProblem problem, int least) {
  least = std::min(least, problem.devices);
  for (auto& list : problem.options)
    std::erase_if(list, [least](const StageOption& o) { return o.devices < least; });
  return problem;
}

}  // namespace

MeshBatchSearch::MeshBatchSearch(const Scenario& scenario, std::int64_t sequences, Seconds least,
                                 const std::function<bool()>& expired)
    : s_(&scenario),
      sequences_(sequences),
      expired_(&expired),
      sequence_parallel_(scenario.plan.sequence_parallel.value_or(
          scenario.training.stack.offers.sequence_parallel)),
      evaluator_(scenario.model, scenario.cluster, scenario.training) {
  result_.bound = least;
}

bool MeshBatchSearch::out_of_time() {
  result_.expired = result_.expired || (*expired_ && (*expired_)());
  return result_.expired;
}

MeshBatch MeshBatchSearch::run(const GroupOrders& orders, Seconds worst) {
  if (!price(orders.front().size())) return std::move(result_);
  result_.bound = max(result_.bound, mesh_bound(*s_, problems_));
  constexpr double slack = 1 - 1e-9;  // sums in another order
  result_.ruled_out = result_.bound.value * slack > worst.value;
  if (!result_.ruled_out) cut(orders);
  return std::move(result_);
}

// Returns false when out of time.
bool MeshBatchSearch::price(std::size_t groups) {
  for (std::size_t g = 0; g < groups; ++g) {
    if (out_of_time()) return false;
    StageOptions options(*s_, static_cast<int>(g), {sequences_, sequence_parallel_}, choices_);
    auto problem = options.problem(*expired_);
    result_.priced += options.priced();
    result_.expired = !problem;
    if (!problem) return false;
    problems_.push_back(std::move(*problem));
  }
  return true;
}

// Alpa's objective omits transfers; larger submeshes give fewer stages and so fewer transfers.
void MeshBatchSearch::cut(const GroupOrders& orders) {
  int widest = 1;
  for (const costmodel::ClusterSpec& group : groups_of(s_->cluster))
    widest = std::max(widest, static_cast<int>(group.devices_per_node));
  std::vector<Slicing> cuts(orders.size());
  bool any = false;
  for (int least = 1; least <= widest; least *= 2) {
    for (std::size_t o = 0; o < orders.size(); ++o) {
      if (out_of_time()) return;
      if (least > 1 && allows(cuts[o], least)) continue;  // the best is known
      cuts[o] = sliced(orders[o], least);
      any = any || cuts[o].lower_bound < infinity;
      if (cuts[o].found()) {
        start(plan_of(cuts[o]));
      } else if (!out_of_time() && result_.reason.empty()) {
        result_.reason = cuts[o].reason;
      }
    }
  }
  if (!any) result_.bound = Seconds(infinity);
}

Slicing MeshBatchSearch::sliced(const std::vector<int>& order, int least) {
  std::vector<SlicingProblem> along;
  for (const int g : order) along.push_back(of_devices(problems_[at(g)], least));
  ++result_.sliced;
  return along.size() == 1 ? best_slicing(along.front(), *expired_)
                           : best_group_slicing(along, *expired_);
}

// Whether every submesh of a slicing has at least `least` devices; false for a slicing without
// stages.
bool MeshBatchSearch::allows(const Slicing& cut, int least) const {
  return std::all_of(cut.stages.begin(), cut.stages.end(), [&](const SlicedStage& stage) {
    const int most = problems_[at(choices_[at(stage.option.tag)].group)].devices;
    return stage.option.devices >= std::min(least, most);
  });
}

ParallelPlan MeshBatchSearch::plan_of(const Slicing& cut) const {
  ParallelPlan plan;
  plan.pp = static_cast<int>(cut.stages.size());
  plan.cp = s_->plan.cp.value_or(1);
  if (plan.cp > 1) plan.cp_comm = s_->plan.cp_comm.value_or(plan.cp_comm);
  plan.ep = s_->plan.ep.value_or(1);
  plan.etp = s_->plan.etp.value_or(1);
  plan.experts = expert_recipe(*s_);
  for (const SlicedStage& stage : cut.stages) {
    plan.stages.push_back(choices_[at(stage.option.tag)].stage);
    plan.stage_layers.push_back(stage.end - stage.first);
    plan.dp = std::max(plan.dp, plan.stages.back().dp);
  }
  --plan.stage_layers.front();
  --plan.stage_layers.back();
  plan.micro_batch = sequences_ / plan.dp;
  plan.sequence_parallel = sequence_parallel_;
  return plan;
}

void MeshBatchSearch::start(const ParallelPlan& plan) {
  const auto same = [&](const Ranked& other) { return other.plan == plan; };
  if (std::any_of(result_.plans.begin(), result_.plans.end(), same)) return;
  if (s_->search.max_pp > 0 && plan.pp > s_->search.max_pp) return;
  if (!is_valid(plan, s_->model, s_->cluster, s_->training)) return;
  const costmodel::PlanCost& cost = evaluator_.cost(plan);
  if (!fits(cost, s_->search.memory_margin)) return;
  const costmodel::Bytes peak = cost.peak;
  ++result_.simulated;
  const Seconds time = evaluator_.iteration_time(plan);
  if (!std::isfinite(time.value)) {
    if (result_.reason.empty()) result_.reason = "what goes from stage to stage takes for ever";
    return;
  }
  result_.plans.push_back({time, peak, 0, plan});
}

}  // namespace planner
