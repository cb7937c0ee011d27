#include "planner/mesh_search.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "planner/group_slicing.hpp"
#include "planner/mesh_improve.hpp"
#include "planner/podium.hpp"
#include "planner/search_space.hpp"
#include "planner/stage_options.hpp"

namespace planner {

using costmodel::Evaluator;
using costmodel::ParallelPlan;
using costmodel::Scenario;
using costmodel::Seconds;

namespace {

// Along the pipeline. Of more than four groups only theirs and its reverse.
std::vector<std::vector<int>> group_orders(int groups) {
  std::vector<int> order(static_cast<std::size_t>(groups));
  std::iota(order.begin(), order.end(), 0);
  constexpr int most_permuted = 4;
  if (groups > most_permuted) return {order, {order.rbegin(), order.rend()}};
  std::vector<std::vector<int>> all;
  do {
    all.push_back(order);
  } while (std::next_permutation(order.begin(), order.end()));
  return all;
}

// Those of at least so many devices, or all of a group that has fewer.
SlicingProblem of_devices(SlicingProblem problem, int least) {
  least = std::min(least, problem.devices);
  for (auto& list : problem.options)
    std::erase_if(list, [least](const StageOption& o) { return o.devices < least; });
  return problem;
}

class MeshSearcher {
 public:
  MeshSearcher(const Scenario& scenario, const std::function<bool()>& expired)
      : s_(&scenario),
        expired_(&expired),
        evaluator_(scenario.model, scenario.cluster, scenario.training) {}

  MeshSearch run() {
    const auto groups = std::max<int>(1, static_cast<int>(s_->cluster.groups.size()));
    const auto orders = group_orders(groups);
    result_.orders = orders.size();
    const double peak = peak_of(s_->cluster, s_->training.precision).value;
    result_.lower_bound = Seconds(evaluator_.model_flops().value / peak);
    for (const std::int64_t sequences : batches()) {
      if (out_of_time()) break;
      ++result_.batches;
      try_batch(sequences, groups, orders);
    }
    finish();
    return std::move(result_);
  }

 private:
  bool out_of_time() {
    result_.expired = result_.expired || (*expired_ && (*expired_)());
    return result_.expired;
  }

  // Sequences of a micro-batch, over all replicas.
  std::vector<std::int64_t> batches() const {
    if (s_->plan.dp && s_->plan.micro_batch) return {*s_->plan.dp * *s_->plan.micro_batch};
    return divisors(s_->training.global_batch);
  }

  bool sequence_parallel() const {
    const auto& stack = s_->training.stack;
    return s_->plan.sequence_parallel.value_or(stack.sequence_parallel);
  }

  void try_batch(std::int64_t sequences, int groups, const std::vector<std::vector<int>>& orders) {
    choices_.clear();
    std::vector<SlicingProblem> problems;
    int widest = 1;
    for (int g = 0; g < groups; ++g) {
      problems.push_back(
          StageOptions(*s_, g, {sequences, sequence_parallel()}, choices_).problem());
      widest = std::max(widest, static_cast<int>(group_of(s_->cluster, g).devices_per_node));
    }
    // Alpa's objective leaves transfers out; larger submeshes make fewer stages and less of them.
    std::vector<Slicing> cuts(orders.size());
    for (int least = 1; least <= widest; least *= 2) {
      for (std::size_t o = 0; o < orders.size(); ++o) {
        if (out_of_time()) return;
        if (least > 1 && allows(cuts[o], problems, least)) continue;  // the best is known
        std::vector<SlicingProblem> along;
        for (const int g : orders[o])
          along.push_back(of_devices(problems[static_cast<std::size_t>(g)], least));
        cuts[o] = along.size() == 1 ? best_slicing(along.front(), *expired_)
                                    : best_group_slicing(along, *expired_);
        ++result_.sliced;
        if (!cuts[o].stages.empty()) {
          start(plan_of(cuts[o], sequences));
        } else if (!out_of_time() && result_.reason.empty()) {
          result_.reason = cuts[o].reason;
        }
      }
    }
  }

  // Whether a slicing has no smaller submesh than that; one without stages has none.
  bool allows(const Slicing& cut, const std::vector<SlicingProblem>& problems, int least) const {
    return std::all_of(cut.stages.begin(), cut.stages.end(), [&](const SlicedStage& stage) {
      const auto group = choices_[static_cast<std::size_t>(stage.option.tag)].group;
      const int most = problems[static_cast<std::size_t>(group)].devices;
      return stage.option.devices >= std::min(least, most);
    });
  }

  ParallelPlan plan_of(const Slicing& cut, std::int64_t sequences) const {
    ParallelPlan plan;
    plan.pp = static_cast<int>(cut.stages.size());
    plan.cp = s_->plan.cp.value_or(1);
    plan.cp_comm = s_->plan.cp_comm.value_or(plan.cp_comm);
    plan.ep = s_->plan.ep.value_or(1);
    plan.etp = s_->plan.etp.value_or(1);
    for (const SlicedStage& stage : cut.stages) {
      plan.stages.push_back(choices_[static_cast<std::size_t>(stage.option.tag)].stage);
      plan.stage_layers.push_back(stage.end - stage.first);
      plan.dp = std::max(plan.dp, plan.stages.back().dp);
    }
    --plan.stage_layers.front();
    --plan.stage_layers.back();
    plan.micro_batch = sequences / plan.dp;
    plan.sequence_parallel = sequence_parallel();
    return plan;
  }

  void start(const ParallelPlan& plan) {
    const auto same = [&](const Ranked& other) { return other.plan == plan; };
    if (std::any_of(started_.begin(), started_.end(), same)) return;
    if (s_->search.max_pp > 0 && plan.pp > s_->search.max_pp) return;
    if (!is_valid(plan, s_->model, s_->cluster, s_->training)) return;
    if (!fits(evaluator_.cost(plan), s_->search.memory_margin)) return;
    ++result_.simulated;
    const Seconds time = evaluator_.iteration_time(plan);
    if (!std::isfinite(time.value)) {
      if (result_.reason.empty()) result_.reason = "what goes from stage to stage takes for ever";
      return;
    }
    const auto order = static_cast<std::uint64_t>(started_.size());
    started_.push_back({time, evaluator_.cost(plan).peak, order, plan});
  }

  // The best as they were cut are improved; what comes of them is ranked with the others.
  void finish() {
    std::stable_sort(started_.begin(), started_.end(), better);
    constexpr std::size_t improved = 12;
    std::vector<Ranked> found;
    for (std::size_t i = 0; i < started_.size(); ++i) {
      Ranked ranked = started_[i];
      if (i < improved && !out_of_time()) {
        MeshImprover improver(*s_, evaluator_, *expired_);
        ranked = improver.improved(ranked);
        result_.simulated += improver.simulated();
        ++result_.improved;
      }
      const bool known = std::any_of(found.begin(), found.end(),
                                     [&](const Ranked& r) { return r.plan == ranked.plan; });
      if (!known) found.push_back(std::move(ranked));
    }
    std::stable_sort(found.begin(), found.end(), better);
    for (std::size_t i = 0; i < found.size() && i < static_cast<std::size_t>(s_->search.top); ++i)
      result_.plans.push_back(evaluator_.estimate(found[i].plan));
    if (!result_.plans.empty()) {
      result_.reason.clear();
    } else if (result_.expired) {
      result_.reason = "time ran out before a plan was found";
    } else if (result_.reason.empty()) {
      result_.reason = "no plan obeys the rules for these devices, this batch and the fixed keys";
    }
  }

  const Scenario* s_;
  const std::function<bool()>* expired_;
  Evaluator evaluator_;
  std::vector<StageChoice> choices_;
  std::vector<Ranked> started_;
  MeshSearch result_;
};

struct Refusal {
  const char* key;
  const char* why;
};

// What this search cannot hold fixed.
std::optional<Refusal> refusal(const Scenario& s) {
  const auto& listed = s.search.schedules;
  const auto plain = costmodel::ScheduleKind::one_f_one_b;
  const bool offered =
      listed.empty() || std::find(listed.begin(), listed.end(), plain) != listed.end();
  if (!s.plan.stages.empty()) return Refusal{"stages", "are fixed, and plan searches them"};
  if (!s.plan.replicas.empty()) return Refusal{"replicas", "are fixed, and plan searches them"};
  if (!s.plan.stage_layers.empty())
    return Refusal{"stage_layers", "are searched where stages differ"};
  if (s.plan.pp) return Refusal{"pp", "is searched where stages differ"};
  if (s.plan.dp.has_value() != s.plan.micro_batch.has_value()) {
    return Refusal{s.plan.dp ? "dp" : "micro_batch",
                   "alone does not say how large a micro-batch is"};
  }
  if (s.plan.rank_order != costmodel::default_rank_order)
    return Refusal{"rank_order", "is the default where stages differ"};
  if (!offered) return Refusal{"search", "leaves out 1f1b, the schedule where stages differ"};
  if (s.plan.vpp.value_or(1) != 1) return Refusal{"vpp", "is 1 where stages differ"};
  if (s.plan.schedule.value_or(plain) != plain)
    return Refusal{"schedule", "is 1f1b where stages differ"};
  return {};
}

}  // namespace

bool can_search_meshes(const Scenario& scenario) { return !refusal(scenario); }

MeshSearch search_meshes(const Scenario& scenario, const std::function<bool()>& expired) {
  if (const auto fault = refusal(scenario)) {
    throw costmodel::ConfigError(scenario.plan.mark_of(fault->key),
                                 std::string(fault->key) + " " + fault->why,
                                 "leave it out, or ask `shardplan evaluate`");
  }
  MeshSearch found = MeshSearcher(scenario, expired).run();
  if (scenario.cluster.groups.size() > 1) found.replicas = search_replicas(scenario, expired);
  return found;
}

}  // namespace planner
