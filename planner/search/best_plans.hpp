// The best plans found so far in a search, and the test whether a bound admits another one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "costmodel/base/units.hpp"
#include "costmodel/plan/parallel_plan.hpp"
#include "planner/solvers/tolerances.hpp"

namespace planner {

// A layout, or stages with sizes of their own, must be this many times as fast as plainer plans to
// be reported.
inline constexpr double worth_words = 1.001;

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

// Whether plans differ in nothing but how many layers of a stage are recomputed: a ranking shows
// the best of them.
inline bool one_row(const costmodel::ParallelPlan& a, const costmodel::ParallelPlan& b) {
  if (a.recompute.layers == 0 || b.recompute.layers == 0) return false;
  costmodel::ParallelPlan alike = a;
  alike.recompute.layers = b.recompute.layers;
  return alike == b;
}

class Podium {
 public:
  explicit Podium(std::size_t top) : top_(top) {}

  // Whether a plan with lower bound `bound` could still enter. Bounds and simulated times are sums
  // in different orders, so a bound must be clearly above the worst time to prune.
  bool open_to(costmodel::Seconds bound) const {
    constexpr double slack = 1 - 1e-9;
    return ranked_.size() < top_ || bound.value * slack <= ranked_.back().time.value;
  }

  // The time that a plan must not exceed to enter; infinite while there is room.
  costmodel::Seconds worst() const {
    return ranked_.size() < top_ ? costmodel::Seconds(infinity) : ranked_.back().time;
  }

  void offer(Ranked candidate) {
    const auto like = std::find_if(ranked_.begin(), ranked_.end(), [&](const Ranked& known) {
      return one_row(known.plan, candidate.plan);
    });
    if (like != ranked_.end()) {
      if (better(*like, candidate)) return;
      ranked_.erase(like);
    }
    const auto at = std::upper_bound(ranked_.begin(), ranked_.end(), candidate, better);
    ranked_.insert(at, std::move(candidate));
    if (ranked_.size() > top_) ranked_.pop_back();
  }

  const std::vector<Ranked>& ranked() const { return ranked_; }

 private:
  std::size_t top_;
  std::vector<Ranked> ranked_;
};

}  // namespace planner
