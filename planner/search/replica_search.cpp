#include "planner/search/replica_search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "costmodel/base/escape.hpp"
#include "costmodel/base/unit_text.hpp"
#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/estimate/replica_cost.hpp"
#include "costmodel/plan/plan_text.hpp"
#include "planner/search/mesh_improve.hpp"
#include "planner/search/search_space.hpp"
#include "planner/search/stage_options.hpp"
#include "planner/solvers/tolerances.hpp"

namespace planner {

using namespace costmodel;

namespace {

// Unless search.max_micro_batch or plan.micro_batch says otherwise.
constexpr std::int64_t most_replica_micro_batch = 256;
// Of shares that could be part of the best, in actions simulated; pricing one counts as 512. A
// batch that few sizes divide needs more.
constexpr std::int64_t most_replica_work = std::int64_t{1} << 26;
constexpr std::int64_t work_of_pricing = 512;

bool no_worse(const ReplicaEnd& a, const ReplicaEnd& b) {
  return a.meeting <= b.meeting && a.optimizer <= b.optimizer && a.gather <= b.gather;
}

// One group's plan with any number of micro-batches; memory and time grow with it.
struct Line {
  ParallelPlan plan;
  std::int64_t most = 1;                     // micro-batches, with which it fits
  double least_time = 0, greatest_time = 0;  // lower bounds for one micro-batch and for `most`

  std::int64_t granule() const { return std::int64_t{plan.dp} * plan.micro_batch; }
  ReplicaShare share(std::int64_t micro_batches) const { return {plan, micro_batches}; }
};

struct Pick {
  const Line* line = nullptr;
  std::int64_t micro_batches = 0;
};

// One share of one group, or the combined shares of the groups so far.
struct Choice {
  ReplicaEnd end;
  std::vector<Pick> picks;
};

// Keeps a choice unless it is dominated, and drops those that it dominates.
void keep(std::vector<Choice>& front, Choice choice) {
  for (const Choice& other : front)
    if (no_worse(other.end, choice.end)) return;
  std::erase_if(front, [&](const Choice& other) { return no_worse(choice.end, other.end); });
  front.push_back(std::move(choice));
}

using Fronts = std::map<std::int64_t, std::vector<Choice>>;  // by sequences

// The last number in [low, high] for which `holds`, which is true at `low` and does not become true
// again.
template <class Holds>
std::int64_t last_that(std::int64_t low, std::int64_t high, Holds holds) {
  if (holds(high)) return high;
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (holds(middle) ? low : high) = middle;
  }
  return low;
}

class ReplicaSearcher {
 public:
  ReplicaSearcher(const Scenario& s, const std::function<bool()>& expired)
      : s_(&s), expired_(&expired), evaluator_(s.model, s.cluster, s.training) {}

  ReplicaSearch run() {
    for (std::size_t g = 0; g < evaluator_.groups() && !out_of_time(); ++g) {
      lines_.push_back(lines_of(g));
      if (lines_[g].empty() && !result_.expired) {
        result_.reason = fmt::format("no replica of the model fits on the devices of group {}",
                                     quote(s_->cluster.groups[g].name));
        return std::move(result_);
      }
    }
    if (!std::isfinite(evaluator_.across().value)) {
      result_.reason = "summing gradients over the groups takes for ever";
      return std::move(result_);
    }
    if (!result_.expired) search();
    if (result_.expired || work_ > most_replica_work) result_.shares.clear();
    if (result_.expired) {
      result_.reason = "time ran out before all shares were priced";
    } else if (work_ > most_replica_work) {
      result_.reason =
          "too many shares of the batch could be the best; a batch that more sizes divide has "
          "fewer";
    } else if (result_.shares.empty()) {
      result_.reason = "no shares of the groups make up the global batch";
    }
    return std::move(result_);
  }

 private:
  bool out_of_time() {
    result_.expired = result_.expired || (*expired_ && (*expired_)());
    return result_.expired;
  }

  std::int64_t batch() const { return s_->training.global_batch; }
  // Of one group: every other group takes at least one sequence.
  std::int64_t most_sequences() const {
    return batch() - static_cast<std::int64_t>(evaluator_.groups()) + 1;
  }

  template <class Fixed>
  static bool open(const std::optional<Fixed>& fixed, std::int64_t value) {
    return !fixed || *fixed == value;
  }
  static bool within(std::int64_t limit, std::int64_t value) {
    return limit == 0 || value <= limit;
  }

  // All plans on a group's devices, except for their micro-batch.
  std::vector<ParallelPlan> plans_of(std::size_t g) const {
    const ClusterSpec& group = s_->cluster.groups[g];
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
            s_->plan.sequence_parallel.value_or(s_->training.stack.offers.sequence_parallel) &&
            tp > 1;
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

  std::vector<Line> lines_of(std::size_t g) {
    const std::int64_t largest =
        s_->search.max_micro_batch > 0 ? s_->search.max_micro_batch : most_replica_micro_batch;
    std::vector<Line> lines;
    for (const ParallelPlan& plan : plans_of(g)) {
      Line line{plan};
      for (std::int64_t b = 1; b * plan.dp <= most_sequences(); ++b) {
        if (b > largest && !s_->plan.micro_batch) break;
        if (!open(s_->plan.micro_batch, b)) continue;
        if (out_of_time()) return {};
        line.plan.micro_batch = b;
        if (!evaluator_.is_valid(g, line.share(1))) continue;
        const auto fits = [&](std::int64_t m) { return priced_within_memory(g, line.share(m)); };
        if (!fits(1)) break;
        line.most = last_that(1, most_sequences() / line.granule(), fits);
        line.least_time = bound(g, line, 1);
        line.greatest_time = bound(g, line, line.most);
        lines.push_back(line);
      }
    }
    return lines;
  }

  bool priced_within_memory(std::size_t g, const ReplicaShare& share) {
    ++result_.evaluated;
    return evaluator_.cost(g, share).peak <=
           evaluator_.capacity(g) * (1 - s_->search.memory_margin);
  }

  // A lower bound on the end of a share.
  ReplicaEnd least_end(std::size_t g, const ReplicaShare& share) {
    const PlanCost& cost = evaluator_.cost(g, share);
    ++result_.evaluated;
    ReplicaEnd least{cost.bound.pipeline * (1 - rounding), {}, {}};
    for (std::size_t r = 0; r < cost.ranks.size(); ++r) {
      least.optimizer = max(least.optimizer, cost.ranks[r].after.optimizer);
      least.gather = max(least.gather, cost.ranks[r].after.gather_exposed);
    }
    return least;
  }

  // On the iteration time of all groups if this one takes the share.
  double bound(std::size_t g, const Line& line, std::int64_t micro_batches) {
    return evaluator_.iteration({least_end(g, line.share(micro_batches))}).value;
  }

  // The most micro-batches of the line with a bound of at most `limit`; 0: none.
  std::int64_t reach(std::size_t g, const Line& line, double limit) {
    if (line.least_time > limit) return 0;
    if (line.greatest_time <= limit) return line.most;
    std::int64_t low = 1, high = line.most;
    double at_low = line.least_time, at_high = line.greatest_time;
    // The bound is nearly a straight line: a guess between the ends, then the number above it.
    for (bool above = false; high - low > 1; above = !above) {
      const double part = (limit - at_low) / (at_high - at_low);
      const auto guess = low + static_cast<std::int64_t>(part * static_cast<double>(high - low));
      const std::int64_t m = above ? low + 1 : std::clamp(guess, low + 1, high - 1);
      const double time = bound(g, line, m);
      if (time <= limit) {
        low = m, at_low = time;
      } else {
        high = m, at_high = time;
      }
    }
    return low;
  }

  // About the time at which the groups together have done the batch: no bound, but where to start.
  double likely_time() const {
    double low = 0, high = 0;
    for (const auto& lines : lines_)
      for (const Line& line : lines) high = std::max(high, line.greatest_time);
    for (int step = 0; step < 60; ++step) {
      const double middle = (low + high) / 2;
      double done = 0;
      for (const auto& lines : lines_) {
        double most = 0;
        for (const Line& line : lines) most = std::max(most, sequences_by(line, middle));
        done += most;
      }
      (done < static_cast<double>(batch()) ? low : high) = middle;
    }
    return high;
  }

  static double sequences_by(const Line& line, double time) {
    if (time < line.least_time) return 0;
    const double whole = line.greatest_time - line.least_time;
    const double part = whole > 0 ? std::min(1.0, (time - line.least_time) / whole) : 1;
    return static_cast<double>(line.granule()) * (1 + part * static_cast<double>(line.most - 1));
  }

  // Looks at shares that end within a limit, and raises it until the best of them is the best of
  // all: every share left out has a bound above the limit.
  void search() {
    double last = 0;
    std::int64_t divisor = 0;  // of every share
    for (const auto& lines : lines_) {
      for (const Line& line : lines) {
        last = std::max(last, line.greatest_time);
        divisor = std::gcd(divisor, line.granule());
      }
    }
    if (batch() % divisor != 0) return;
    const double start = likely_time();
    for (double wider = 1 / static_cast<double>(batch()); !out_of_time(); wider *= 2) {
      const double limit = start * (1 + wider);
      best_within(limit);
      if (!result_.shares.empty() && result_.iteration.value > limit)
        best_within(result_.iteration.value);
      if (!result_.shares.empty() || work_ > most_replica_work || limit >= last) return;
    }
  }

  void best_within(double limit) {
    std::vector<std::vector<std::int64_t>> reaches;
    std::vector<std::int64_t> most;  // sequences, by group
    std::int64_t all = 0;
    for (std::size_t g = 0; g < lines_.size(); ++g) {
      reaches.emplace_back();
      most.push_back(0);
      for (const Line& line : lines_[g]) {
        if (out_of_time()) return;
        reaches[g].push_back(reach(g, line, limit));
        most[g] = std::max(most[g], reaches[g].back() * line.granule());
      }
      all += most[g];
    }
    if (all < batch()) return;
    Fronts sums{{0, {{}}}};
    std::int64_t later = all;
    for (std::size_t g = 0; g < lines_.size(); ++g) {
      later -= most[g];
      const Fronts own = of_group(g, reaches[g], batch() - (all - most[g]));
      if (result_.expired || work_ > most_replica_work) return;
      sums = added(sums, own, batch() - later, g + 1 == lines_.size());
    }
    choose(sums);
  }

  // The fewest micro-batches of a line with at least so many sequences.
  static std::int64_t first_share(const Line& line, std::int64_t sequences) {
    return (std::max<std::int64_t>(1, sequences) - 1) / line.granule() + 1;
  }

  // The shares of a group of at least `least` sequences and at most `reaches` micro-batches a line.
  Fronts of_group(std::size_t g, const std::vector<std::int64_t>& reaches, std::int64_t least) {
    Fronts fronts;
    for (std::size_t k = 0; k < reaches.size(); ++k) {
      const Line& line = lines_[g][k];
      for (std::int64_t m = first_share(line, least); m <= reaches[k]; ++m) {
        if (out_of_time() || work_ > most_replica_work) return {};
        consider(g, {&line, m}, fronts[m * line.granule()]);
      }
    }
    return fronts;
  }

  void consider(std::size_t g, const Pick& pick, std::vector<Choice>& front) {
    const ReplicaShare share = pick.line->share(pick.micro_batches);
    const ReplicaEnd least = least_end(g, share);
    work_ += work_of_pricing;
    const bool beaten =
        std::ranges::any_of(front, [&](const Choice& c) { return no_worse(c.end, least); });
    if (beaten) return;
    ++result_.simulated;
    work_ +=
        std::min(most_simulated_actions, std::int64_t{2} * share.plan.pp * share.micro_batches);
    keep(front, {evaluator_.end(g, share), {pick}});
  }

  // Adds a group; `least` sequences are needed with it, and the last one takes all that remain.
  Fronts added(const Fronts& all, const Fronts& own, std::int64_t least, bool last) const {
    Fronts sums;
    for (const auto& [before, choices] : all) {
      const std::int64_t from = last ? batch() - before : least - before;
      for (auto more = own.lower_bound(from); more != own.end(); ++more) {
        const std::int64_t sum = before + more->first;
        if (last ? sum > batch() : sum >= batch()) break;
        for (const Choice& a : choices)
          for (const Choice& b : more->second) keep(sums[sum], together(a, b));
      }
    }
    return sums;
  }

  static Choice together(const Choice& a, const Choice& b) {
    Choice both{{max(a.end.meeting, b.end.meeting), max(a.end.optimizer, b.end.optimizer),
                 max(a.end.gather, b.end.gather)},
                a.picks};
    both.picks.push_back(b.picks.front());
    return both;
  }

  void choose(const Fronts& all) {
    const auto found = all.find(batch());
    if (found == all.end()) return;
    const Choice* best = nullptr;
    for (const Choice& choice : found->second) {
      const Seconds time = evaluator_.iteration({choice.end});
      if (best != nullptr && time >= result_.iteration) continue;
      best = &choice;
      result_.iteration = time;
    }
    result_.across = evaluator_.across();
    result_.shares.clear();
    result_.ends.clear();
    result_.used.clear();
    for (std::size_t g = 0; g < best->picks.size(); ++g) {
      const ReplicaShare share = best->picks[g].line->share(best->picks[g].micro_batches);
      result_.shares.push_back(share);
      result_.ends.push_back(evaluator_.end(g, share));
      result_.used.push_back(evaluator_.cost(g, share).peak / evaluator_.capacity(g));
    }
  }

  const Scenario* s_;
  const std::function<bool()>* expired_;
  ReplicaEvaluator evaluator_;
  std::vector<std::vector<Line>> lines_;  // by group
  std::int64_t work_ = 0;
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
        s.cluster.groups[g].name, format_integer(share.sequences()),
        format_integer(s.training.global_batch), to_string(share.plan), share.micro_batches,
        format_seconds(found.ends[g].meeting)));
  }
  lines.push_back(fmt::format(
      "{} shares of a group priced, {} simulated; of such plans (one pipeline size a group, 1f1b) "
      "the best, proved.",
      format_integer(static_cast<long long>(found.evaluated)),
      format_integer(static_cast<long long>(found.simulated))));
  return lines;
}

}  // namespace planner
