#include "planner/solvers/group_slicing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <queue>
#include <utility>

#include "planner/solvers/tolerances.hpp"

namespace planner {

namespace {

// The recurrence, from the last layer and the last device to the first of both.
class Recurrence {
 public:
  explicit Recurrence(const std::vector<SlicingProblem>& groups) : groups_(&groups) {
    m_ = groups.front().micro_batches;
    layers_ = groups.front().layers;
    for (std::size_t g = groups.size(); g-- > 0;) {
      starts_.push_back(devices_);
      group_at_.insert(group_at_.end(), static_cast<std::size_t>(groups[g].devices), g);
      devices_ += groups[g].devices;
    }
    std::reverse(starts_.begin(), starts_.end());
    int finite = 0;
    for (const SlicingProblem& group : groups) {
      for (const auto& list : group.options) {
        for (const StageOption& option : list) {
          if (!usable(option)) continue;
          candidates_.push_back(option.seconds);
          if (option.most_in_flight < m_) finite = std::max(finite, option.most_in_flight);
        }
      }
    }
    std::sort(candidates_.begin(), candidates_.end());
    candidates_.erase(std::unique(candidates_.begin(), candidates_.end()), candidates_.end());
    levels_ = std::min(finite + 1, layers_);
  }

  const std::vector<double>& candidates() const { return candidates_; }
  std::uint64_t labels() const { return labels_; }

  // The least sum of stage times for stages no longer than `longest`, if below `most`; else
  // infinite.
  double solve(double longest, double most) {
    const auto states = static_cast<std::size_t>(levels_ + 1) * plane();
    sums_.assign(states, infinity);
    from_.assign(states, {});
    sums_[index(0, layers_, 0)] = 0;
    for (int end = layers_; end > 0; --end) {
      for (int level = 0; level <= levels_; ++level) {
        for (int used = 0; used < devices_; ++used) {
          const double sum = sums_[index(level, end, used)];
          if (sum < most) extend({level, end, used}, sum, longest, most);
        }
      }
    }
    best_level_ = 0;
    for (int level = 1; level <= levels_; ++level) {
      if (sums_[index(level, 0, devices_)] < sums_[index(best_level_, 0, devices_)])
        best_level_ = level;
    }
    return sums_[index(best_level_, 0, devices_)];
  }

  // The stages of the last solve that found any.
  std::vector<SlicedStage> stages() const {
    std::vector<SlicedStage> stages;
    State at{best_level_, 0, devices_};
    while (at.first < layers_) {
      const Step& step = from_[index(at.level, at.first, at.used)];
      stages.push_back({at.first, step.before.first, *step.option});
      at = step.before;
    }
    return stages;
  }

 private:
  struct State {
    int level = 0;  // stages from here to the last, counted up to `levels_`
    int first = 0;  // layers from here on are in them
    int used = 0;   // devices of theirs
  };
  struct Step {
    State before;
    const StageOption* option = nullptr;
  };

  static bool usable(const StageOption& o) {
    return o.devices > 0 && o.most_in_flight > 0 && std::isfinite(o.seconds) && o.seconds >= 0;
  }
  std::size_t plane() const {
    return static_cast<std::size_t>(layers_ + 1) * static_cast<std::size_t>(devices_ + 1);
  }
  std::size_t index(int level, int first, int used) const {
    return static_cast<std::size_t>(level) * plane() +
           static_cast<std::size_t>(first) * static_cast<std::size_t>(devices_ + 1) +
           static_cast<std::size_t>(used);
  }

  // Prepends a stage.
  void extend(const State& at, double sum, double longest, double most) {
    const std::size_t g = group_at_[static_cast<std::size_t>(at.used)];
    const SlicingProblem& group = (*groups_)[g];
    const int room = starts_[g] + group.devices - at.used;
    const int level = std::min(at.level + 1, levels_);
    const auto in_flight = std::min<std::int64_t>(at.level + 1, m_);
    for (int first = at.first - 1; first >= 0; --first) {
      const auto c = group.range_class[group.at(first, at.first)];
      if (c < 0) continue;
      for (const StageOption& o : group.options[static_cast<std::size_t>(c)]) {
        if (!usable(o) || o.devices > room || o.seconds > longest || o.most_in_flight < in_flight)
          continue;
        const double total = sum + o.seconds;
        const std::size_t to = index(level, first, at.used + o.devices);
        if (total >= most || total >= sums_[to]) continue;
        sums_[to] = total;
        from_[to] = {at, &o};
        ++labels_;
      }
    }
  }

  const std::vector<SlicingProblem>* groups_;
  std::int64_t m_ = 1;
  int layers_ = 0, devices_ = 0, levels_ = 1;
  std::vector<int> starts_;            // by group: devices in later groups
  std::vector<std::size_t> group_at_;  // group of the device that has this many after it
  std::vector<double> candidates_;
  std::vector<double> sums_;
  std::vector<Step> from_;
  int best_level_ = 0;
  std::uint64_t labels_ = 0;
};

// Slicings whose longest time is one of the candidates low .. high.
struct Interval {
  double bound;
  std::size_t low, high;
  bool operator<(const Interval& other) const {  // the least bound comes first
    return bound != other.bound ? bound > other.bound : low > other.low;
  }
};

class GroupSlicer {
 public:
  GroupSlicer(const std::vector<SlicingProblem>& groups, const std::function<bool()>& expired)
      : weight_(static_cast<double>(groups.front().micro_batches - 1)),
        recurrence_(groups),
        expired_(&expired) {}

  Slicing run() {
    const auto& times = recurrence_.candidates();
    best_.lower_bound = infinity;
    if (times.empty()) return std::move(best_);
    push(0, 0, times.size() - 1);
    while (!open_.empty() && !closed(open_.top().bound)) {
      if (*expired_ && (*expired_)()) break;
      const Interval next = open_.top();
      open_.pop();
      settle(next);
    }
    best_.lower_bound = best_.objective;
    if (!open_.empty()) best_.lower_bound = std::min(best_.objective, open_.top().bound);
    best_.statistics.labels = recurrence_.labels();
    return std::move(best_);
  }

 private:
  bool closed(double bound) const { return bound >= best_.objective * (1 - equal_share); }

  void push(double sum, std::size_t low, std::size_t high) {
    const double bound = sum + weight_ * recurrence_.candidates()[low];
    if (!closed(bound)) open_.push({bound, low, high});
  }

  // The result for the largest candidate is optimal among slicings whose longest time is at least
  // its own; the other candidates remain, in two halves.
  void settle(const Interval& i) {
    const auto& times = recurrence_.candidates();
    ++best_.statistics.programs;
    const double least = recurrence_.solve(times[i.high], best_.objective - weight_ * times[i.low]);
    if (least == infinity) return;
    const auto stages = recurrence_.stages();
    offer(stages);
    double longest = 0;
    for (const SlicedStage& stage : stages) longest = std::max(longest, stage.option.seconds);
    const auto at = static_cast<std::size_t>(std::lower_bound(times.begin(), times.end(), longest) -
                                             times.begin());
    if (at <= i.low) return;
    const std::size_t high = at - 1, middle = i.low + (high - i.low) / 2;
    push(least, i.low, middle);
    if (middle < high) push(least, middle + 1, high);
    ++best_.statistics.intervals;
  }

  void offer(const std::vector<SlicedStage>& stages) {
    double sum = 0, longest = 0;
    for (std::size_t k = stages.size(); k-- > 0;) {
      sum += stages[k].option.seconds;
      longest = std::max(longest, stages[k].option.seconds);
    }
    const double objective = sum + weight_ * longest;
    if (objective >= best_.objective * (1 - equal_share)) return;
    best_.stages = stages;
    best_.sum = sum;
    best_.longest = longest;
    best_.objective = objective;
  }

  double weight_;
  Recurrence recurrence_;
  const std::function<bool()>* expired_;
  std::priority_queue<Interval> open_;
  Slicing best_;
};

std::string senseless_groups(const std::vector<SlicingProblem>& groups) {
  if (groups.empty()) return "there are no devices";
  for (const SlicingProblem& group : groups) {
    if (group.layers < 1) return "there are no layers";
    if (group.devices < 1) return "a group has no devices";
    if (group.micro_batches < 1) return "there are no micro-batches";
    if (group.layers != groups.front().layers ||
        group.micro_batches != groups.front().micro_batches)
      return "the groups are given different layers or micro-batches";
  }
  if (groups.front().layers < static_cast<int>(groups.size())) {
    return fmt::format("{} layers for {} groups: every group needs a stage of a layer at least",
                       groups.front().layers, groups.size());
  }
  return "";
}

bool sliceable(std::vector<SlicingProblem> groups) {
  for (SlicingProblem& group : groups) {
    for (auto& list : group.options)
      for (StageOption& option : list) option.most_in_flight = any_in_flight;
  }
  return GroupSlicer(groups, {}).run().found();
}

}  // namespace

Slicing best_group_slicing(const std::vector<SlicingProblem>& groups,
                           const std::function<bool()>& expired) {
  Slicing result;
  result.lower_bound = infinity;
  result.reason = senseless_groups(groups);
  if (!result.reason.empty()) return result;
  result = GroupSlicer(groups, expired).run();
  if (result.found()) return result;
  if (result.lower_bound < infinity) {
    result.reason = "time ran out before a slicing was found";
  } else if (sliceable(groups)) {
    result.reason = "no slicing fits in memory with the micro-batches in flight";
  } else {
    result.reason = "no stages use up the devices of every group";
  }
  return result;
}

}  // namespace planner
