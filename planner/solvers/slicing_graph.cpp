#include "planner/solvers/slicing_graph.hpp"

#include <algorithm>
#include <cmath>

#include "planner/solvers/tolerances.hpp"

namespace planner {

namespace {

bool usable(const StageOption& option, int devices) {
  return option.devices >= 1 && option.devices <= devices && option.most_in_flight >= 1 &&
         option.seconds >= 0 && std::isfinite(option.seconds);
}

}  // namespace

SlicingGraph::SlicingGraph(const SlicingProblem& problem) : problem_(&problem) {
  most_ = static_cast<int>(std::min<std::int64_t>(problem.layers, problem.micro_batches));
  const std::size_t classes = problem.options.size();
  uses_at_.reserve(classes + 1);
  uses_at_.push_back(0);
  quickest_.assign(classes, infinity);
  kind_.resize(classes);
  std::vector<std::uint32_t> order;
  for (std::size_t c = 0; c < classes; ++c) {
    add(problem.options[c], order);
    for (std::size_t i = uses_at_[c]; i < uses_.size(); ++i) {
      quickest_[c] = std::min(quickest_[c], uses_[i].seconds);
      longest_ = std::max(longest_, uses_[i].seconds);
    }
    uses_at_.push_back(uses_.size());
  }
  limit(longest_);
  most_levels_ = levels_;
}

// Removes dominated options: among those of one size, keeps those faster than all that fit at least
// as often; highest level first.
void SlicingGraph::add(const std::vector<StageOption>& list, std::vector<std::uint32_t>& order) {
  order.clear();
  for (std::size_t i = 0; i < list.size(); ++i)
    if (usable(list[i], devices())) order.push_back(static_cast<std::uint32_t>(i));
  const auto room = [&](std::uint32_t i) { return std::min(list[i].most_in_flight, most_); };
  std::ranges::sort(order, [&](std::uint32_t a, std::uint32_t b) {
    if (list[a].devices != list[b].devices) return list[a].devices < list[b].devices;
    if (room(a) != room(b)) return room(a) > room(b);
    return list[a].seconds != list[b].seconds ? list[a].seconds < list[b].seconds : a < b;
  });
  double quickest = infinity;
  int devices = 0;
  std::erase_if(order, [&](std::uint32_t i) {
    if (list[i].devices != devices) quickest = infinity;
    devices = list[i].devices;
    const bool useless = list[i].seconds >= quickest;
    quickest = std::min(quickest, list[i].seconds);
    return useless;
  });
  std::ranges::stable_sort(order,
                           [&](std::uint32_t a, std::uint32_t b) { return room(a) > room(b); });
  for (const std::uint32_t i : order)
    uses_.push_back({list[i].seconds, room(i), static_cast<std::int32_t>(i)});
}

// Levels at which some option stops fitting, plus one; a stage has at most as many micro-batches in
// flight as there are layers or micro-batches.
void SlicingGraph::find_levels(double seconds) {
  levels_ = 1;
  for (std::size_t c = 0; c < quickest_.size(); ++c) {
    if (quickest_[c] > seconds) continue;
    for (std::size_t i = uses_at_[c]; i < uses_at_[c + 1]; ++i) {
      if (uses_[i].level < most_ && uses_[i].seconds <= seconds)
        levels_ = std::max(levels_, uses_[i].level + 1);
    }
  }
}

void SlicingGraph::take(std::size_t problem_class, double seconds) {
  for (std::size_t i = uses_at_[problem_class]; i < uses_at_[problem_class + 1]; ++i) {
    const Use& use = uses_[i];
    if (use.seconds > seconds) continue;
    const StageOption& option =
        problem_->options[problem_class][static_cast<std::size_t>(use.index)];
    seconds_.push_back(option.seconds);
    devices_.push_back(option.devices);
    level_.push_back(std::min(use.level, levels_));
    source_.push_back(&option);
  }
  first_.push_back(seconds_.size());
}

void SlicingGraph::limit(double seconds) {
  if (seconds == limit_) return;
  limit_ = seconds;
  find_levels(seconds);
  seconds_.clear();
  devices_.clear();
  level_.clear();
  source_.clear();
  first_.assign(1, 0);
  for (std::size_t c = 0; c < quickest_.size(); ++c) {
    kind_[c] = quickest_[c] <= seconds ? static_cast<std::int32_t>(kinds()) : -1;
    if (kind_[c] >= 0) take(c, seconds);
  }
  ranges_.clear();
  ranges_at_.assign(1, 0);
  for (int first = 0; first < layers(); ++first) {
    const std::int32_t* row = problem_->range_class.data() + problem_->at(first, 0);
    for (int end = first + 1; end <= layers(); ++end) {
      if (row[end] < 0) continue;
      const std::int32_t kind = kind_[static_cast<std::size_t>(row[end])];
      if (kind >= 0) ranges_.push_back({end, kind});
    }
    ranges_at_.push_back(ranges_.size());
  }
}

// Four independent minima, for instruction-level parallelism.
double SlicingGraph::least_priced(std::size_t begin, std::size_t end, double price) const {
  const double* seconds = seconds_.data();
  const double* devices = devices_.data();
  const auto value = [&](std::size_t i) { return seconds[i] + price * devices[i]; };
  double least[4] = {infinity, infinity, infinity, infinity};
  std::size_t i = begin;
  for (; i + 4 <= end; i += 4) {
    for (std::size_t k = 0; k < 4; ++k) {
      const double priced = value(i + k);
      least[k] = priced < least[k] ? priced : least[k];
    }
  }
  for (; i < end; ++i) least[0] = std::min(least[0], value(i));
  return std::min(std::min(least[0], least[1]), std::min(least[2], least[3]));
}

}  // namespace planner
