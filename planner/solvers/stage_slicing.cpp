#include "planner/solvers/stage_slicing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <queue>
#include <utility>

#include "planner/solvers/slicing_bound.hpp"
#include "planner/solvers/slicing_paths.hpp"
#include "planner/solvers/tolerances.hpp"

namespace planner {

namespace {

// Objectives within this relative difference count as equal: sums of the same times may differ by
// less.

// Slicings whose longest time is within low .. high.
struct TimeInterval {
  double bound;  // on their objective
  double sum;    // on their sum of times
  double low, high;
  double price;  // of a device, that gave the bound
  bool bounded;  // by the Lagrangian at `high`; before that only by its neighbours
  std::uint64_t order;
  double step = 1e-4;  // share of `sum` by which the next cutoff is above it
};

struct Later {
  bool operator()(const TimeInterval& a, const TimeInterval& b) const {
    return a.bound != b.bound ? a.bound > b.bound : a.order > b.order;
  }
};

class Slicer {
 public:
  Slicer(const SlicingProblem& problem, const std::function<bool()>& expired)
      : weight_(static_cast<double>(problem.micro_batches - 1)),
        graph_(problem),
        bound_(graph_),
        paths_(graph_, bound_),
        expired_(&expired) {}

  Slicing run() {
    add(0, graph_.longest(), 0);
    while (!open_.empty() && !closed(open_.top())) {
      const TimeInterval next = open_.top();
      if (*expired_ && (*expired_)()) break;
      open_.pop();
      if (!next.bounded) {
        bound(next);
      } else if (worth_halving(next)) {
        const double middle = next.low + (next.high - next.low) / 2;
        add(next.low, middle, next.sum);
        add_bounded(middle, next.high, next.sum, next.price);
      } else if (!settle(next)) {
        open_.push(next);
        break;
      }
    }
    return finished();
  }

 private:
  bool closed(const TimeInterval& i) const {
    return i.bound >= best_.objective * (1 - equal_share);
  }

  void push(const TimeInterval& interval) {
    if (interval.low <= interval.high && !closed(interval)) open_.push(interval);
  }
  void add(double low, double high, double sum) {
    push({sum + weight_ * low, sum, low, high, 0, false, order_++});
  }
  void add_bounded(double low, double high, double sum, double price) {
    push({sum + weight_ * low, sum, low, high, price, true, order_++});
  }
  // The remaining candidates: longest times below that of the best slicing.
  void add_below(double low, const SlicingPath& path) {
    if (path.longest > low) add(low, std::nextafter(path.longest, low), path.sum);
  }

  void bound(const TimeInterval& i) {
    ++best_.statistics.intervals;
    graph_.limit(i.high);
    const double least = bound_.solve();
    if (least == infinity) return;
    if (bound_.met()) {
      offer(*bound_.met());
      add_below(i.low, *bound_.met());
    } else {
      add_bounded(i.low, i.high, std::max(i.sum, least), bound_.price());
    }
  }

  // Splitting an interval raises the lower end of one half and the least sum of the other. It does
  // not help once the longest times of the interval hardly matter, or when the program is small
  // anyway.
  bool worth_halving(const TimeInterval& i) const {
    constexpr double small_gap = 0.0003, small_part = 0.3, small_interval = 0.03;
    const bool any = best_.objective < infinity;  // else no cutoff but a guess keeps programs small
    if (!any) return weight_ * (i.high - i.low) > small_interval * i.bound;
    const double gap = best_.objective - i.bound;
    const bool small = gap <= small_gap * best_.objective;
    return !small && weight_ * (i.high - i.low) > small_part * gap;
  }

  void offer(const SlicingPath& path) {
    const double objective = path.sum + weight_ * path.longest;
    if (objective >= best_.objective * (1 - equal_share)) return;
    best_.stages = path.stages;
    best_.sum = path.sum;
    best_.longest = path.longest;
    best_.objective = objective;
  }

  // The best slicing of the interval, if its sum is below a cutoff; a nearer cutoff leaves fewer
  // states. If there is none, the interval is queued again with a larger proved sum and the next
  // cutoff further up. False: out of time.
  bool settle(const TimeInterval& i) {
    constexpr double growth = 2, last_step = 16;
    const double most = best_.objective - weight_ * i.low;
    double cutoff = most;
    if (i.step < last_step) cutoff = std::min(most, i.sum * (1 + i.step));
    graph_.limit(i.high);
    bound_.ready(i.price);
    ++best_.statistics.programs;
    const auto outcome = paths_.solve(cutoff, *expired_);
    if (outcome == SlicingPaths::Outcome::expired) return false;
    if (outcome == SlicingPaths::Outcome::found) {
      offer(paths_.path());
      add_below(i.low, paths_.path());
    } else if (cutoff < most) {
      TimeInterval later = i;
      later.sum = cutoff;
      later.bound = cutoff + weight_ * i.low;
      later.step *= growth;
      later.order = order_++;
      push(later);
    }
    return true;
  }

  Slicing finished() {
    best_.statistics.labels = paths_.labels();
    best_.lower_bound = best_.objective;
    if (!open_.empty()) best_.lower_bound = std::min(best_.objective, open_.top().bound);
    return std::move(best_);
  }

  double weight_;  // of the longest time
  SlicingGraph graph_;
  SlicingBound bound_;
  SlicingPaths paths_;
  const std::function<bool()>* expired_;
  std::priority_queue<TimeInterval, std::vector<TimeInterval>, Later> open_;
  std::uint64_t order_ = 0;
  Slicing best_;
};

// The first layer that no range with a stage option satisfying the predicate covers; -1 if all are
// covered.
template <class Wanted>
int uncovered(const SlicingProblem& p, Wanted wanted) {
  std::vector<char> good(p.options.size(), 0);
  for (std::size_t c = 0; c < good.size(); ++c) {
    for (const StageOption& o : p.options[c])
      if (wanted(o)) good[c] = 1;
  }
  std::vector<int> opened(static_cast<std::size_t>(p.layers) + 1, 0);
  for (int first = 0; first < p.layers; ++first) {
    for (int end = first + 1; end <= p.layers; ++end) {
      const std::int32_t c = p.range_class[p.at(first, end)];
      if (c < 0 || good[static_cast<std::size_t>(c)] == 0) continue;
      ++opened[static_cast<std::size_t>(first)];
      --opened[static_cast<std::size_t>(end)];
    }
  }
  int open = 0;
  for (int layer = 0; layer < p.layers; ++layer) {
    open += opened[static_cast<std::size_t>(layer)];
    if (open == 0) return layer;
  }
  return -1;
}

// Why the sizes of a problem are inconsistent; empty when they are consistent.
std::string senseless(const SlicingProblem& p) {
  if (p.layers < 1) return "there are no layers to cut";
  if (p.devices < 1) return "there are no devices";
  if (p.micro_batches < 1) return "there are no micro-batches";
  return {};
}

// Why a problem without a solution has none, in a sentence.
std::string why_unsliceable(const SlicingProblem& p) {
  const auto placed = [&](const StageOption& o) {
    return o.devices >= 1 && o.devices <= p.devices;
  };
  const auto ends = [&](const StageOption& o) {
    return placed(o) && std::isfinite(o.seconds) && o.seconds >= 0;
  };
  const auto fits = [&](const StageOption& o) { return ends(o) && o.most_in_flight >= 1; };
  if (const int layer = uncovered(p, placed); layer >= 0)
    return fmt::format("no stage with layer {} goes on any of the submeshes", layer);
  if (const int layer = uncovered(p, ends); layer >= 0)
    return fmt::format("every stage with layer {} takes for ever", layer);
  if (const int layer = uncovered(p, fits); layer >= 0) {
    return fmt::format("no stage with layer {} fits in memory, even with one micro-batch in flight",
                       layer);
  }
  SlicingProblem roomy = p;
  bool limited = false;
  for (auto& list : roomy.options) {
    for (StageOption& o : list) {
      limited |= o.most_in_flight < any_in_flight;
      o.most_in_flight = any_in_flight;
    }
  }
  if (limited && best_slicing(roomy).found()) {
    return "stages fit in memory one by one, but no slicing fits with the micro-batches that its "
           "pipeline keeps in flight";
  }
  return fmt::format(
      "no slicing uses exactly {} devices: the submeshes of its stages do not add up", p.devices);
}

}  // namespace

Slicing best_slicing(const SlicingProblem& problem, const std::function<bool()>& expired) {
  Slicing result;
  result.lower_bound = infinity;
  result.reason = senseless(problem);
  if (!result.reason.empty()) return result;
  result = Slicer(problem, expired).run();
  if (!result.found()) {
    const bool proved = result.lower_bound == infinity;
    result.reason = proved ? why_unsliceable(problem) : "time ran out before a slicing was found";
  }
  return result;
}

std::vector<int> submeshes(int devices, int devices_per_node) {
  std::vector<int> sizes;
  for (int n = 1; n < devices_per_node && n <= devices; n *= 2) sizes.push_back(n);
  for (int n = devices_per_node; n <= devices; n += devices_per_node) sizes.push_back(n);
  return sizes;
}

}  // namespace planner
