// The best plans found so far in a search, and the test whether a bound admits another one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "costmodel/base/units.hpp"
#include "costmodel/plan/parallel_plan.hpp"
#include "costmodel/scenario/scenario.hpp"
#include "planner/solvers/tolerances.hpp"

namespace planner {

// A layout, or stages with sizes of their own, must be this many times as fast as plainer plans to
// be reported.
inline constexpr double worth_words = 1.001;

// Which plans are of use; empty: all are.
using PlanFilter = std::function<bool(const costmodel::ParallelPlan&)>;

struct Ranked {
  costmodel::Seconds time;
  costmodel::Bytes peak;
  std::uint64_t order;  // in the enumeration
  costmodel::ParallelPlan plan;
};

inline bool better(const Ranked& a, const Ranked& b) {
  if (a.time != b.time) return a.time < b.time;
  if (a.peak != b.peak) return a.peak < b.peak;
  return a.order < b.order;
}

// How much of the forward a plan computes again; more compares greater.
inline std::pair<costmodel::Recomputation, int> recomputed(const costmodel::ParallelPlan& plan) {
  const costmodel::Recompute& r = plan.recompute;
  return {r.granularity, r.layers == 0 ? std::numeric_limits<int>::max() : r.layers};
}

// The same of one family: of those that take as long, the one that recomputes less comes first, so
// that a search need not price what recomputes more and is no faster.
inline bool better_in_family(const Ranked& a, const Ranked& b) {
  if (a.time != b.time) return a.time < b.time;
  const auto own = recomputed(a.plan), other = recomputed(b.plan);
  return own != other ? own < other : better(a, b);
}

// Whether plans differ in nothing but how many layers of a stage are recomputed: a ranking shows
// the best of them.
inline bool one_row(const costmodel::ParallelPlan& a, const costmodel::ParallelPlan& b) {
  if (a.recompute.layers == 0 || b.recompute.layers == 0) return false;
  costmodel::ParallelPlan alike = a;
  alike.recompute.layers = b.recompute.layers;
  return alike == b;
}

// Whether plans share t, p, d, c and e: what decides where a rank's weights and data lie. Of stages
// with sizes of their own each has to, on the same devices.
inline bool one_family(const costmodel::ParallelPlan& a, const costmodel::ParallelPlan& b) {
  const auto same_sizes = [](const costmodel::StagePlan& x, const costmodel::StagePlan& y) {
    return x.tp == y.tp && x.dp == y.dp && x.cp == y.cp && x.ep == y.ep && x.group == y.group;
  };
  if (!a.stages.empty() || !b.stages.empty())
    return std::ranges::equal(a.stages, b.stages, same_sizes);
  return a.tp == b.tp && a.pp == b.pp && a.dp == b.dp && a.cp == b.cp && a.ep == b.ep;
}

// The best plan of each of the best rows. A plan that a row's best one rules out cannot be that
// row's best, and one that all rows rule out cannot be of a better row: so each row is exact.
class Podium {
 public:
  explicit Podium(std::size_t top, costmodel::RankingRows rows = costmodel::RankingRows::plans)
      : top_(top), families_(rows == costmodel::RankingRows::families) {}
  // `below`: a plan that takes longer does not enter.
  explicit Podium(const costmodel::SearchLimits& limits, PlanFilter takes = {},
                  costmodel::Seconds below = costmodel::Seconds(infinity))
      : Podium(static_cast<std::size_t>(limits.top), limits.rows) {
    takes_ = std::move(takes);
    below_ = below;
  }

  // Whether a plan that fits is one to rank: one that no filter refuses.
  bool takes(const costmodel::ParallelPlan& plan) const { return !takes_ || takes_(plan); }

  // Whether a plan of any row with lower bound `bound` could still enter. Bounds and simulated
  // times are sums in different orders, so a bound must be clearly above the worst time to prune.
  bool open_to(costmodel::Seconds bound) const { return within(bound, worst()); }
  // The same of this plan: in a family that has a row it must be the family's best.
  bool open_to(costmodel::Seconds bound, const costmodel::ParallelPlan& plan) const {
    return within(bound, worst(plan));
  }

  // The time that a plan must not exceed to enter; `below` while there is room.
  costmodel::Seconds worst() const { return ranked_.size() < top_ ? below_ : ranked_.back().time; }
  costmodel::Seconds worst(const costmodel::ParallelPlan& plan) const {
    if (!families_) return worst();
    const auto known = std::find_if(ranked_.begin(), ranked_.end(),
                                    [&](const Ranked& r) { return one_family(r.plan, plan); });
    return known == ranked_.end() ? worst() : known->time;
  }

  void offer(Ranked candidate) {
    if (candidate.time > below_) return;
    const auto like = std::find_if(ranked_.begin(), ranked_.end(), [&](const Ranked& known) {
      return families_ ? one_family(known.plan, candidate.plan)
                       : one_row(known.plan, candidate.plan);
    });
    if (like != ranked_.end()) {
      if (families_ ? better_in_family(*like, candidate) : better(*like, candidate)) return;
      ranked_.erase(like);
    }
    const auto at = std::upper_bound(ranked_.begin(), ranked_.end(), candidate, better);
    ranked_.insert(at, std::move(candidate));
    if (ranked_.size() > top_) ranked_.pop_back();
  }

  // Whether a plan can be too slow to enter: something is known that fits.
  bool has_worst() const { return !ranked_.empty() || below_.value < infinity; }

  // Whether a plan that is slower than another of its family never enters.
  bool keeps_best() const { return families_; }

  const std::vector<Ranked>& ranked() const { return ranked_; }

 private:
  static bool within(costmodel::Seconds bound, costmodel::Seconds time) {
    constexpr double slack = 1 - 1e-9;
    return bound.value * slack <= time.value;
  }

  std::size_t top_;
  bool families_;
  costmodel::Seconds below_{infinity};
  PlanFilter takes_;
  std::vector<Ranked> ranked_;
};

}  // namespace planner
