#include "planner/search/replica_search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "costmodel/base/escape.hpp"
#include "costmodel/base/unit_text.hpp"
#include "costmodel/plan/plan_text.hpp"
#include "planner/search/mesh_improve.hpp"
#include "planner/search/search_space.hpp"
#include "planner/search/stage_options.hpp"
#include "planner/solvers/tolerances.hpp"

namespace planner {

using costmodel::ParallelPlan;
using costmodel::PlanCost;
using costmodel::ReplicaEnd;
using costmodel::ReplicaShare;
using costmodel::Scenario;
using costmodel::Seconds;

namespace {

bool no_worse(const ReplicaEnd& a, const ReplicaEnd& b) {
  return a.meeting <= b.meeting && a.optimizer <= b.optimizer && a.gather <= b.gather;
}

// One share of one group, or the combined shares of the groups so far.
struct Choice {
  ReplicaEnd end;
  std::vector<ReplicaShare> shares;
};

// Keeps a choice unless it is dominated, and drops those that it dominates.
void keep(std::vector<Choice>& front, Choice choice) {
  for (const Choice& other : front)
    if (no_worse(other.end, choice.end)) return;
  std::erase_if(front, [&](const Choice& other) { return no_worse(choice.end, other.end); });
  front.push_back(std::move(choice));
}

using Fronts = std::map<std::int64_t, std::vector<Choice>>;  // by sequences

class ReplicaSearcher {
 public:
  ReplicaSearcher(const Scenario& s, const std::function<bool()>& expired)
      : s_(&s), expired_(&expired), evaluator_(s.model, s.cluster, s.training) {}

  ReplicaSearch run() {
    Fronts all{{0, {{}}}};
    for (std::size_t g = 0; g < evaluator_.groups() && !out_of_time(); ++g) {
      const Fronts own = of_group(g);
      if (own.empty() && !result_.expired) {
        result_.reason = fmt::format("no replica of the model fits on the devices of group {}",
                                     costmodel::quote(s_->cluster.groups[g].name));
        return std::move(result_);
      }
      all = added(all, own, g + 1 == evaluator_.groups());
    }
    if (!result_.expired) choose(all);
    if (result_.shares.empty() && result_.reason.empty()) {
      result_.reason = result_.expired ? "time ran out before all shares were priced"
                                       : "no shares of the groups make up the global batch";
    }
    return std::move(result_);
  }

 private:
  bool out_of_time() {
    result_.expired = result_.expired || (*expired_ && (*expired_)());
    return result_.expired;
  }

  std::int64_t batch() const { return s_->training.global_batch; }

  template <class Fixed>
  static bool open(const std::optional<Fixed>& fixed, std::int64_t value) {
    return !fixed || *fixed == value;
  }
  static bool within(std::int64_t limit, std::int64_t value) {
    return limit == 0 || value <= limit;
  }

  // All plans on a group's devices, except for their micro-batch.
  std::vector<ParallelPlan> plans_of(std::size_t g) const {
    const costmodel::ClusterSpec& group = s_->cluster.groups[g];
    std::vector<ParallelPlan> plans;
    ParallelPlan plan;
    plan.cp = s_->plan.cp.value_or(1);
    plan.cp_comm = s_->plan.cp_comm.value_or(plan.cp_comm);
    plan.ep = s_->plan.ep.value_or(1);
    plan.etp = s_->plan.etp.value_or(1);
    plan.experts = expert_recipe(*s_);
    if (group.devices % plan.cp != 0) return plans;
    const std::int64_t devices = group.devices / plan.cp;
    const std::int64_t widest = s_->search.max_tp > 0 ? s_->search.max_tp : group.devices_per_node;
    for (const std::int64_t tp : divisors(devices)) {
      if (tp > widest || !open(s_->plan.tp, tp)) continue;
      for (const std::int64_t pp : divisors(devices / tp)) {
        if (pp > s_->model.layers || !within(s_->search.max_pp, pp)) continue;
        plan.tp = static_cast<int>(tp);
        plan.pp = static_cast<int>(pp);
        plan.dp = static_cast<int>(devices / tp / pp);
        if (!open(s_->plan.dp, plan.dp)) continue;
        plan.sequence_parallel =
            s_->plan.sequence_parallel.value_or(s_->training.stack.sequence_parallel) && tp > 1;
        for (const auto& recompute : recompute_offered(*s_)) {
          for (const int zero : zero_offered(*s_, plan.replicas())) {
            plan.recompute = recompute;
            plan.zero = zero;
            plans.push_back(plan);
          }
        }
      }
    }
    return plans;
  }

  Fronts of_group(std::size_t g) {
    Fronts fronts;
    for (const ParallelPlan& plan : plans_of(g)) {
      // Every other group takes at least one sequence.
      const std::int64_t most = batch() - static_cast<std::int64_t>(evaluator_.groups()) + 1;
      for (std::int64_t b = 1; b * plan.dp <= most; ++b) {
        if (!within(s_->search.max_micro_batch, b) || !open(s_->plan.micro_batch, b)) continue;
        ReplicaShare share{plan, 1};
        share.plan.micro_batch = b;
        for (; share.sequences() <= most; ++share.micro_batches) {
          if (out_of_time()) return {};
          if (!consider(g, share, fronts[share.sequences()])) break;
        }
      }
    }
    std::erase_if(fronts, [](const auto& entry) { return entry.second.empty(); });
    return fronts;
  }

  // Returns false when more micro-batches cannot help: the plan breaks a rule or does not fit.
  bool consider(std::size_t g, const ReplicaShare& share, std::vector<Choice>& front) {
    if (!evaluator_.is_valid(g, share)) return false;
    const PlanCost& cost = evaluator_.cost(g, share);
    ++result_.evaluated;
    if (cost.peak > evaluator_.capacity(g) * (1 - s_->search.memory_margin)) return false;
    ReplicaEnd least{cost.pipeline_bound * (1 - rounding), {}, {}};
    for (std::size_t r = 0; r < cost.optimizer.size(); ++r) {
      least.optimizer = max(least.optimizer, cost.optimizer[r]);
      least.gather = max(least.gather, cost.gather_exposed[r]);
    }
    const bool beaten = std::any_of(front.begin(), front.end(),
                                    [&](const Choice& c) { return no_worse(c.end, least); });
    if (beaten) return true;
    ++result_.simulated;
    keep(front, {evaluator_.end(g, share), {share}});
    return true;
  }

  // Adds a group; the last one takes the remaining sequences.
  Fronts added(const Fronts& all, const Fronts& own, bool last) const {
    Fronts sums;
    for (const auto& [before, choices] : all) {
      for (const auto& [sequences, more] : own) {
        const std::int64_t sum = before + sequences;
        if (last ? sum != batch() : sum >= batch()) continue;
        for (const Choice& a : choices) {
          for (const Choice& b : more) {
            Choice both{{max(a.end.meeting, b.end.meeting), max(a.end.optimizer, b.end.optimizer),
                         max(a.end.gather, b.end.gather)},
                        a.shares};
            both.shares.push_back(b.shares.front());
            keep(sums[sum], std::move(both));
          }
        }
      }
    }
    return sums;
  }

  void choose(const Fronts& all) {
    const auto found = all.find(batch());
    if (found == all.end()) return;
    if (!std::isfinite(evaluator_.across().value)) {
      result_.reason = "summing gradients over the groups takes for ever";
      return;
    }
    result_.across = evaluator_.across();
    for (const Choice& choice : found->second) {
      const Seconds time = evaluator_.iteration({choice.end});
      if (!result_.shares.empty() && time >= result_.iteration) continue;
      result_.shares = choice.shares;
      result_.iteration = time;
    }
    for (std::size_t g = 0; g < result_.shares.size(); ++g) {
      result_.ends.push_back(evaluator_.end(g, result_.shares[g]));
      result_.used.push_back(evaluator_.cost(g, result_.shares[g]).peak / evaluator_.capacity(g));
    }
  }

  const Scenario* s_;
  const std::function<bool()>* expired_;
  costmodel::ReplicaEvaluator evaluator_;
  ReplicaSearch result_;
};

}  // namespace

ReplicaSearch search_replicas(const Scenario& s, const std::function<bool()>& expired) {
  ReplicaSearch none;
  if (s.cluster.groups.size() < 2) none.reason = "there is one group of devices";
  if (s.training.global_batch < static_cast<std::int64_t>(s.cluster.groups.size()))
    none.reason = "there are fewer sequences than groups";
  if (!none.reason.empty()) return none;
  return ReplicaSearcher(s, expired).run();
}

std::vector<std::string> replica_sentences(const ReplicaSearch& found, const Scenario& s,
                                           Seconds pipeline) {
  if (found.shares.empty())
    return {fmt::format("With replicas in each group instead: {}.", found.reason)};
  std::vector<std::string> lines;
  std::string against;
  if (pipeline.value > 0) {
    const double gain = 100 * (1 - found.iteration / pipeline);
    against = fmt::format(", {:.2f} % {} than the best pipeline through all groups", std::abs(gain),
                          gain >= 0 ? "faster" : "slower");
  }
  lines.push_back(fmt::format(
      "With replicas in each group instead, that take unequal shares of the batch: {}{}; of that "
      "{} sums gradients over the groups.",
      format_seconds(found.iteration), against, format_seconds(found.across)));
  for (std::size_t g = 0; g < found.shares.size(); ++g) {
    const ReplicaShare& share = found.shares[g];
    lines.push_back(fmt::format(
        "Group '{}' takes {} of {} sequences: {} · m {}; its gradients are summed after {}.",
        s.cluster.groups[g].name, costmodel::format_integer(share.sequences()),
        costmodel::format_integer(s.training.global_batch), to_string(share.plan),
        share.micro_batches, format_seconds(found.ends[g].meeting)));
  }
  lines.push_back(fmt::format(
      "{} shares of a group priced, {} simulated; of such plans (one pipeline size a group, 1f1b) "
      "the best, proved.",
      costmodel::format_integer(static_cast<long long>(found.evaluated)),
      costmodel::format_integer(static_cast<long long>(found.simulated))));
  return lines;
}

}  // namespace planner
