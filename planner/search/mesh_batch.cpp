#include "planner/search/mesh_batch.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/estimate/iteration_end.hpp"
#include "costmodel/plan/stage_plan.hpp"
#include "planner/search/mesh_improve.hpp"
#include "planner/solvers/tolerances.hpp"

namespace planner {

using namespace costmodel;

namespace {

constexpr double slack = 1 - 1e-9;     // sums in another order
constexpr double close_enough = 2e-4;  // relative, of bound and plan
constexpr const char* endless = "what goes from stage to stage takes for ever";
constexpr int early_stages = 4;
constexpr std::uint64_t most_effort = 40'000'000;  // labels of a size's cuts

// Options with at least `least` devices, or with all devices of a smaller group.
SlicingProblem of_devices(SlicingProblem problem, int least) {
  least = std::min(least, problem.devices);
  for (auto& list : problem.options)
    std::erase_if(list, [least](const StageOption& o) { return o.devices < least; });
  return problem;
}

}  // namespace

MeshBatchSearch::MeshBatchSearch(const Scenario& scenario, std::int64_t sequences,
                                 const std::function<bool()>& expired, Seconds below)
    : s_(&scenario),
      sequences_(sequences),
      expired_(&expired),
      sequence_parallel_(scenario.plan.sequence_parallel.value_or(
          scenario.training.stack.offers.sequence_parallel)),
      evaluator_(scenario.model, scenario.cluster, scenario.training),
      transfer_(scenario, sequences),
      best_(below) {}

bool MeshBatchSearch::out_of_time() {
  result_.expired = result_.expired || (*expired_ && (*expired_)());
  return result_.expired;
}

bool MeshBatchSearch::price() {
  const std::size_t groups = groups_of(s_->cluster).size();
  for (std::size_t g = 0; g < groups && !out_of_time(); ++g) {
    StageOptions options(*s_, static_cast<int>(g), {sequences_, sequence_parallel_}, choices_);
    auto problem = options.problem(*expired_);
    result_.priced += options.priced();
    result_.expired = !problem;
    if (problem) problems_.push_back(std::move(*problem));
  }
  return problems_.size() == groups;
}

// Every order of the groups is cut once, so that there is a plan to hold the bounds of all sizes
// against.
Seconds MeshBatchSearch::begin(const GroupOrders& orders, Seconds least) {
  orders_ = orders;
  result_.bound = least;
  if (!price()) return result_.bound;
  const Seconds bound = max(least, mesh_bound(*s_, problems_));
  result_.bound = Seconds(infinity);
  const int most = most_stages(*s_);
  for (std::size_t o = 0; o < orders.size(); ++o) {
    const SubmeshProblem all = problem_of(problems_, {bound, {1, most}, o});
    const int fewest = fewest_stages(all, true);
    if (fewest > most) {
      if (result_.reason.empty()) result_.reason = why_no_submesh_cut(all);
      continue;
    }
    for (int few = 1; few <= most; few = 2 * few) {
      const Branch branch{bound, {few, std::min(2 * few - 1, most)}, o};
      if (branch.stages.most < fewest) continue;
      const bool early = few <= std::max(fewest, early_stages);
      if (!early || !settle(branch)) open_.push_back(branch);
    }
  }
  return bound_of_open();
}

Seconds MeshBatchSearch::bound_of_open() const {
  Seconds least = result_.bound;
  for (const Branch& branch : open_) least = min(least, branch.bound);
  return least;
}

// Nothing more is looked for in the branch.
void MeshBatchSearch::close(const Branch& branch) {
  if (branch.bound >= result_.bound) return;
  result_.bound = branch.bound;
  result_.held_by = {sequences_, branch.stages.least, branch.stages.most, orders_[branch.order]};
}

// The branch with the least bound comes first, until that is above the best plan.
MeshBatch MeshBatchSearch::run(Seconds best) {
  best_ = min(best_, best);
  const auto later = [](const Branch& a, const Branch& b) { return a.bound > b.bound; };
  const std::uint64_t before = result_.sliced;
  const bool open = !open_.empty();
  while (!open_.empty()) {
    std::ranges::stable_sort(open_, later);
    const Branch branch = open_.back();
    open_.pop_back();
    if (branch.bound.value > best_.value * (1 - close_enough) || !settle(branch)) {
      close(branch);
      break;
    }
  }
  result_.ruled_out = open && result_.sliced == before;
  return std::move(result_);
}

// Returns false when out of time, or when too much effort was made.
bool MeshBatchSearch::settle(Branch branch) {
  if (effort_ > most_effort || out_of_time()) return false;
  const StageCounts all = branch.stages;
  const bool splits = depends_on(all);
  const Problems groups = in_pipelines(branch);
  SubmeshProblem problem = problem_of(groups, branch);
  const EndTerms terms = end_terms({}, evaluator_.workload());
  problem.start = (branch.bound / terms.factor() - terms.host).value * slack;
  problem.limit = (best_ / terms.factor() - terms.host).value;
  problem.tolerance = splits ? 10 * close_enough : close_enough / 2;
  const SubmeshCut found = best_submesh_cut(problem);
  const Seconds longest = best_;
  ++result_.sliced;
  effort_ += found.effort;
  if (!found.stages.empty()) {
    start(plan_of(found.stages));
  } else if (!found.complete && result_.plans.empty()) {
    start_anyhow(branch);
  } else if (longest.value == infinity && result_.reason.empty()) {
    result_.reason = endless;
  }
  const Seconds bound = found.bound < infinity
                            ? (Seconds(found.bound) + terms.host) * terms.factor()
                            : longest;  // and more
  branch.bound = max(branch.bound, bound);
  if (!found.complete || found.stages.empty() || !splits) {
    close(branch);
    return true;
  }
  const auto root = static_cast<int>(std::sqrt(static_cast<double>(all.least) * all.most));
  const int middle = std::clamp(root, all.least, all.most - 1);
  for (const StageCounts part : {StageCounts{all.least, middle}, {middle + 1, all.most}})
    open_.push_back({branch.bound, part, branch.order});
  return true;
}

// Whether the times of stages differ much between pipelines of so many stages.
bool MeshBatchSearch::depends_on(const StageCounts& stages) const {
  const std::int64_t m = s_->training.global_batch / sequences_;
  const auto groups = groups_of(s_->cluster);
  return std::ranges::any_of(groups, [&](const ClusterSpec& devices) {
    return waits_differ(devices, m, stages.least, stages.most);
  });
}

// The options at a branch's numbers of stages, where first stages have what its order adds.
MeshBatchSearch::Problems MeshBatchSearch::in_pipelines(const Branch& branch) const {
  const std::vector<int>& order = orders_[branch.order];
  Problems all = problems_;
  for (std::size_t g = 0; g < all.size(); ++g) {
    const ClusterSpec& devices = group_of(s_->cluster, static_cast<int>(g));
    for (auto& list : all[g].options) {
      for (StageOption& option : list)
        option = in_pipeline(option, devices, all[g].micro_batches, branch.stages.most);
    }
  }
  SlicingProblem& first = all[at(order.front())];
  std::vector<char> summed(first.options.size(), 0);
  for (int end = 1; end < first.layers; ++end) {
    const auto c = first.range_class[first.at(0, end)];
    if (c < 0 || std::exchange(summed[at(c)], 1) != 0) continue;
    for (StageOption& option : first.options[at(c)]) {
      const int tp = choices_[at(option.tag)].stage.tp;
      const bool join = order.front() != order.back();
      option.reduction += transfer_.least_table(order.front(), tp, join).value;
    }
  }
  return all;
}

SubmeshProblem MeshBatchSearch::problem_of(const Problems& groups, const Branch& branch) const {
  const std::vector<int>& order = orders_[branch.order];
  SubmeshProblem problem;
  for (const int g : order) problem.groups.push_back(&groups[at(g)]);
  problem.least_stages = branch.stages.least;
  problem.most_stages = branch.stages.most;
  problem.transfer = [this, &order](std::size_t g, int devices, bool join, int layer) {
    return transfer_.least(order[g], devices, join, layer).value;
  };
  problem.blocking = !s_->training.overlap.pp_overlap;
  problem.most_effort = most_effort - std::min(most_effort, effort_);
  problem.expired = *expired_;
  return problem;
}

// Of so many devices that the whole is too much: stages of Alpa's objective, or ever wider ones.
void MeshBatchSearch::start_anyhow(const Branch& branch) {
  if (problems_.size() == 1) {
    const Slicing found = best_slicing(problems_.front(), *expired_);
    if (found.found()) start(plan_of(found.stages));
    return;
  }
  for (int least = 2; least <= s_->cluster.devices && !out_of_time(); least *= 2) {
    Problems wide;
    for (const SlicingProblem& problem : problems_) wide.push_back(of_devices(problem, least));
    const SubmeshCut found = best_submesh_cut(problem_of(wide, branch));
    if (found.stages.empty()) continue;
    start(plan_of(found.stages));
    return;
  }
}

ParallelPlan MeshBatchSearch::plan_of(const std::vector<SlicedStage>& stages) const {
  ParallelPlan plan;
  plan.pp = static_cast<int>(stages.size());
  plan.cp = s_->plan.cp.value_or(1);
  if (plan.cp > 1) plan.cp_comm = s_->plan.cp_comm.value_or(plan.cp_comm);
  plan.ep = s_->plan.ep.value_or(1);
  plan.etp = s_->plan.etp.value_or(1);
  plan.experts = expert_recipe(*s_);
  for (const SlicedStage& stage : stages) {
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
  if (std::ranges::any_of(result_.plans, same)) return;
  if (s_->search.max_pp > 0 && plan.pp > s_->search.max_pp) return;
  if (!is_valid(plan, s_->model, s_->cluster, s_->training)) return;
  const PlanCost& cost = evaluator_.cost(plan);
  if (!fits(cost, s_->search.memory_margin)) return;
  const Bytes peak = cost.peak;
  ++result_.simulated;
  const Seconds time = evaluator_.iteration_time(plan);
  if (!std::isfinite(time.value)) {
    if (result_.reason.empty()) result_.reason = endless;
    return;
  }
  best_ = min(best_, time);
  result_.plans.push_back({time, peak, 0, plan});
}

namespace {

// By class: the least (weighted) device-seconds of a stage.
std::vector<double> least_device_seconds(const SlicingProblem& group, double weight) {
  std::vector<double> least;
  for (const auto& list : group.options) {
    least.push_back(infinity);
    for (const StageOption& o : list) {
      if (o.most_in_flight > 0)
        least.back() = std::min(least.back(), weight * o.devices * o.seconds);
    }
  }
  return least;
}

// `path[n]` is the least device-seconds of the first n layers.
void add_group(const SlicingProblem& group, const std::vector<double>& least, int first,
               std::vector<double>& path) {
  for (int end = first + 1; end <= group.layers; ++end) {
    const auto c = group.range_class[group.at(first, end)];
    if (c < 0) continue;
    path[at(end)] = std::min(path[at(end)], path[at(first)] + least[at(c)]);
  }
}

}  // namespace

Seconds mesh_bound(const Scenario& s, const std::vector<SlicingProblem>& groups) {
  const SlicingProblem& any = groups.front();
  const auto precision = s.training.precision;
  std::vector<std::vector<double>> least;
  double all = 0;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const ClusterSpec& devices = group_of(s.cluster, static_cast<int>(g));
    const double peak = devices.device.peak_of(precision).value;
    least.push_back(least_device_seconds(groups[g], peak));
    all += peak * static_cast<double>(devices.devices);
  }
  std::vector<double> path(at(any.layers + 1), infinity);
  path.front() = 0;
  for (int first = 0; first < any.layers; ++first)
    for (std::size_t g = 0; g < groups.size(); ++g) add_group(groups[g], least[g], first, path);
  return Seconds(static_cast<double>(any.micro_batches) * path.back() / all);
}

}  // namespace planner
