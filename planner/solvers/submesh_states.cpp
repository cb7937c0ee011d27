#include "planner/solvers/submesh_states.hpp"

#include <algorithm>
#include <cmath>

namespace planner {

namespace {

bool usable(const StageOption& o) {
  return o.devices > 0 && o.most_in_flight > 0 && std::isfinite(o.forward + o.backward);
}

// The place of a size in a sorted list.
std::int32_t size_of(const std::vector<int>& sizes, int devices) {
  const auto found = std::ranges::lower_bound(sizes, devices);
  return static_cast<std::int32_t>(found - sizes.begin());
}

}  // namespace

double latest_start(const TimedStage& stage, double limit, double behind, int stages_behind,
                    double m) {
  const double n = std::min(stages_behind + 1.0, m), work = stage.work();
  const double own = m * work;
  const double returns = own + behind - (n - 1) * stage.forward;
  const double rounds = std::ceil(m / n) * (work + behind) + std::fmod(m - 1, n) * stage.backward;
  const double both = m > n ? (m - n + 1) * work + 2 * behind : 0;
  return limit - stage.after - std::max({own, returns, rounds, both});
}

SubmeshStates::SubmeshStates(const SubmeshProblem& problem)
    : p_(problem),
      m_(static_cast<double>(problem.groups.front()->micro_batches)),
      layers_(problem.groups.front()->layers) {
  for (std::size_t g = p_.groups.size(); g-- > 0;) {
    starts_.push_back(devices_);
    devices_ += p_.groups[g]->devices;
    group_at_.insert(group_at_.end(), at(p_.groups[g]->devices), g);
  }
  std::ranges::reverse(starts_);
  take_options();
  take_transfers();
}

void SubmeshStates::take_options() {
  double slowest = 0, after = 0;
  for (const SlicingProblem* group : p_.groups) {
    auto& sizes = sizes_.emplace_back();
    for (const auto& list : group->options)
      for (const StageOption& o : list) sizes.push_back(o.devices);
    std::ranges::sort(sizes);
    sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
    auto& classes = uses_.emplace_back();
    for (const auto& list : group->options) {
      auto& uses = classes.emplace_back();
      for (const StageOption& o : list) {
        if (!usable(o)) continue;
        uses.push_back({o.devices, size_of(sizes, o.devices), o.forward, o.backward, o.after,
                        o.most_in_flight, &o});
        slowest = std::max(slowest, o.forward + o.backward);
        after = std::max(after, o.after + o.reduction);
        shortest_ = std::min(shortest_, m_ * (o.forward + o.backward));
      }
      std::ranges::stable_sort(uses, [](const Use& a, const Use& b) {
        const double own = a.forward + a.backward, other = b.forward + b.backward;
        return a.devices != b.devices ? a.devices < b.devices : own < other;
      });
    }
  }
  longest_ = (2 * m_ + 2 * layers_) * slowest + after;
}

void SubmeshStates::take_transfers() {
  double slowest = 0;
  for (std::size_t g = 0; g < p_.groups.size(); ++g) {
    Waits& waits = waits_.emplace_back();
    for (const int devices : sizes_[g]) {
      for (const bool join : {false, true}) {
        for (int layer = 0; layer <= layers_; ++layer) {
          const bool inside = p_.transfer && layer > 0 && layer < layers_;
          waits.seconds.push_back(inside ? p_.transfer(g, devices, join, layer) : 0);
          slowest = std::max(slowest, waits.seconds.back());
        }
      }
    }
  }
  if (std::isfinite(slowest)) longest_ += (2 * m_ + 2 * layers_) * 2 * slowest;
}

double SubmeshStates::wait(std::size_t group, std::int32_t size, bool join, int layer) const {
  const std::size_t row = 2 * at(size) + (join ? 1 : 0);
  return waits_[group].seconds[row * (at(layers_) + 1) + at(layer)];
}

TimedStage SubmeshStates::timed(const Use& use, std::size_t group, int behind, int first,
                                int end) const {
  TimedStage stage{use.forward, use.backward, 0, use.after};
  const bool last_of_group = behind == starts_[group];
  const bool first_of_group = behind + use.devices == starts_[group] + p_.groups[group]->devices;
  const double in = wait(group, use.size, first_of_group, first);
  if (p_.blocking) {
    stage.forward += wait(group, use.size, last_of_group, end);
    stage.backward += in;
  } else {
    stage.passing = 2 * in;
  }
  if (first == 0) stage.after += use.option->reduction;
  return stage;
}

TimedStage SubmeshStates::timed(const SlicedStage& stage, int behind) const {
  const StageOption& o = stage.option;
  const std::size_t g = group_at_[at(behind)];
  const Use use{
      o.devices, size_of(sizes_[g], o.devices), o.forward, o.backward, o.after, o.most_in_flight,
      &o};
  return timed(use, g, behind, stage.first, stage.end);
}

double SubmeshStates::time(const std::vector<SlicedStage>& stages) const {
  double behind = 0, start = 0;  // as of labels, for the limit 0
  int used = 0;
  for (std::size_t k = stages.size(); k-- > 0;) {
    const TimedStage stage = timed(stages[k], used);
    const double reduction = k == 0 ? stages[k].option.reduction : 0;
    const auto others = static_cast<int>(stages.size() - 1 - k);
    start = std::min(latest_start(stage, 0, behind, others, m_), start - stage.work() - reduction) -
            stage.passing;
    behind += stage.work() + stage.passing;
    used += stages[k].option.devices;
  }
  return -start;
}

// The options that keep the limit on their own.
void SubmeshStates::keep(double limit) {
  for (auto* sized : {&last_end_, &first_start_}) sized->resize(uses_.size());
  kept_.resize(uses_.size());
  for (std::size_t g = 0; g < uses_.size(); ++g) {
    kept_[g].resize(uses_[g].size());
    for (std::size_t c = 0; c < uses_[g].size(); ++c) {
      auto& kept = kept_[g][c];
      kept.clear();
      for (const Use& use : uses_[g][c])
        if (m_ * (use.forward + use.backward) + use.after <= limit) kept.push_back(use);
    }
    last_end_[g].assign(at(layers_ + 1), 0);
    first_start_[g].assign(at(layers_ + 1), layers_);
    for (int first = 0; first < layers_; ++first) {
      for (int end = first + 1; end <= layers_; ++end) {
        const auto c = p_.groups[g]->range_class[p_.groups[g]->at(first, end)];
        if (c < 0 || kept_[g][at(c)].empty()) continue;
        last_end_[g][at(first)] = end;
        first_start_[g][at(end)] = std::min(first_start_[g][at(end)], first);
      }
    }
  }
}

// From the first layer on, whatever is in flight.
void SubmeshStates::reach(double limit) {
  before_.assign(state(devices_, layers_) + 1, infinity);
  before_[state(devices_, 0)] = 0;
  for (int used = devices_; used > 0 && !out_of_effort(); --used) {
    for (int first = 0; first < layers_; ++first)
      if (before_[state(used, first)] < infinity) reach_from(used, first, limit);
  }
}

void SubmeshStates::reach_from(int used, int first, double limit) {
  const double before = before_[state(used, first)];
  const std::size_t g = group_at_[at(used - 1)];
  const int room = used - starts_[g];
  for (int end = first + 1; end <= last_end_[g][at(first)]; ++end) {
    const auto c = p_.groups[g]->range_class[p_.groups[g]->at(first, end)];
    if (c < 0) continue;
    ++effort_;
    std::int32_t size = -1;
    for (const Use& use : kept_[g][at(c)]) {
      if (use.devices > room) break;
      if (use.size == size) continue;  // the quickest stands first
      size = use.size;
      if (before + m_ * (use.forward + use.backward) > limit) continue;
      const TimedStage stage = timed(use, g, used - use.devices, first, end);
      const double then = before + stage.passing + stage.work();
      if (before + stage.passing + m_ * stage.work() > limit) continue;
      double& known = before_[state(used - use.devices, end)];
      known = std::min(known, then);
    }
  }
}

// A label that is no better than one of as many stages is left out. Where too many differ, two
// become one that is better than both: the result remains a bound.
void SubmeshStates::add(std::vector<std::int32_t>& labels, const Label& label) {
  constexpr std::size_t most_alike = 12;
  std::size_t alike = 0, nearest = 0;
  double least = infinity;
  for (std::size_t k = 0; k < labels.size(); ++k) {
    Label& known = labels_[at(labels[k])];
    if (known.stages != label.stages) continue;
    if (known.start >= label.start && known.behind <= label.behind) return;
    if (known.start <= label.start && known.behind >= label.behind) {
      known = label;
      return;
    }
    ++alike;
    const double apart = std::abs(known.start - label.start);
    if (apart < least) {
      least = apart;
      nearest = k;
    }
  }
  if (alike < most_alike) {
    labels.push_back(static_cast<std::int32_t>(labels_.size()));
    labels_.push_back(label);
    return;
  }
  Label& known = labels_[at(labels[nearest])];
  const double behind = std::min(known.behind, label.behind);
  if (label.start > known.start) known = label;
  known.behind = behind;
}

void SubmeshStates::extend(int used, int end, double limit) {
  const std::size_t g = group_at_[at(used)];
  const SlicingProblem& group = *p_.groups[g];
  const int room = starts_[g] + group.devices - used;
  for (int first = end - 1; first >= first_start_[g][at(end)]; --first) {
    const auto c = group.range_class[group.at(first, end)];
    if (c < 0) continue;
    for (const Use& use : kept_[g][at(c)]) {
      if (use.devices > room) break;
      if (before_[state(used + use.devices, first)] < infinity)
        extend(use, g, used, first, end, limit);
    }
  }
}

void SubmeshStates::extend(const Use& use, std::size_t group, int used, int first, int end,
                           double limit) {
  const TimedStage stage = timed(use, group, used, first, end);
  const int then = used + use.devices;
  const double needed = before_[state(then, first)] - limit * rounding;
  const int most_before = std::min(first, devices_ - then);  // stages
  auto& to = labels_at_[state(then, first)];
  const auto& from = labels_at_[state(used, end)];
  effort_ += from.size();
  for (const std::int32_t rest : from) {
    const Label known = labels_[at(rest)];
    const int stages = known.stages + 1;
    if (use.most_in_flight < std::min<double>(stages, m_) || stages > p_.most_stages ||
        (first > 0 && stages == p_.most_stages) || stages + most_before < p_.least_stages)
      continue;
    double start = latest_start(stage, limit, known.behind, known.stages, m_);
    start = std::min(start, known.start - stage.work() - (first == 0 ? use.option->reduction : 0)) -
            stage.passing;
    if (start < needed) continue;
    add(to, {start, known.behind + stage.work() + stage.passing, stages, rest, end, use.option});
  }
}

bool SubmeshStates::out_of_effort() const {
  return effort_ > p_.most_effort || (p_.expired && p_.expired());
}

SubmeshStates::Outcome SubmeshStates::solve(double limit) {
  keep(limit);
  reach(limit);
  labels_.clear();
  labels_at_.assign(state(devices_, layers_) + 1, {});
  if (out_of_effort()) return Outcome::unsettled;
  if (before_[state(0, layers_)] == infinity) return Outcome::none;
  labels_at_[state(0, layers_)] = {0};
  labels_.push_back({limit, 0, 0, -1, layers_, nullptr});
  for (int used = 0; used < devices_; ++used) {
    if (out_of_effort()) return Outcome::unsettled;
    for (int end = layers_; end > 0; --end)
      if (!labels_at_[state(used, end)].empty()) extend(used, end, limit);
  }
  return labels_at_[state(devices_, 0)].empty() ? Outcome::none : Outcome::found;
}

std::vector<SlicedStage> SubmeshStates::stages() const {
  std::int32_t best = -1;
  for (const std::int32_t label : labels_at_[state(devices_, 0)]) {
    if (best < 0 || labels_[at(label)].start > labels_[at(best)].start) best = label;
  }
  std::vector<SlicedStage> stages;
  int first = 0;
  for (Label label = labels_[at(best)]; label.option != nullptr; label = labels_[at(label.rest)]) {
    stages.push_back({first, label.end, *label.option});
    first = label.end;
  }
  return stages;
}

}  // namespace planner
