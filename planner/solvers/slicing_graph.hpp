// The stage slicing problem as a graph of layers and stages for one limit on stage times. Slower
// stages are removed, and with them most layer ranges and, since slow stages are the ones short of
// memory, most levels. Internal to stage_slicing.
#pragma once

#include <span>
#include <vector>

#include "planner/solvers/stage_slicing.hpp"

namespace planner {

// A stage followed by k stages is at level min(k + 1, levels): from the last level on, memory is no
// constraint. Dominated options of the same class and size are removed.
class SlicingGraph {
 public:
  struct Range {  // a range of layers, given its first one
    std::int32_t end;
    std::int32_t kind;  // its class, numbered among those with options
  };

  explicit SlicingGraph(const SlicingProblem& problem);

  // Restricts the results below to options of at most `seconds`.
  void limit(double seconds);

  int layers() const { return problem_->layers; }
  int devices() const { return problem_->devices; }
  double longest() const { return longest_; }  // over all options, ignoring the limit
  int levels() const { return levels_; }
  int most_levels() const { return most_levels_; }  // ignoring the limit
  std::size_t kinds() const { return first_.size() - 1; }
  std::span<const Range> ranges(int first) const {
    const auto at = static_cast<std::size_t>(first);
    return std::span(ranges_).subspan(ranges_at_[at], ranges_at_[at + 1] - ranges_at_[at]);
  }
  // The options of kind k are first(k) .. first(k + 1) - 1, highest level first.
  std::size_t first(std::int32_t k) const { return first_[static_cast<std::size_t>(k)]; }
  double seconds(std::size_t option) const { return seconds_[option]; }
  double devices_of(std::size_t option) const { return devices_[option]; }
  int level(std::size_t option) const { return level_[option]; }  // the highest at which it fits
  double priced(std::size_t option, double price) const {
    return seconds_[option] + price * devices_[option];
  }
  // Least priced time of the options begin .. end - 1.
  double least_priced(std::size_t begin, std::size_t end, double price) const;
  const StageOption& source(std::size_t option) const { return *source_[option]; }

 private:
  struct Use {  // one option of the problem
    double seconds;
    std::int32_t level, index;
  };
  void add(const std::vector<StageOption>& list, std::vector<std::uint32_t>& order);
  void find_levels(double seconds);
  void take(std::size_t problem_class, double seconds);

  const SlicingProblem* problem_;
  int most_ = 1;  // most micro-batches in flight of a stage
  int most_levels_ = 1, levels_ = 1;
  double longest_ = 0;
  std::vector<Use> uses_;  // all classes, highest level first
  std::vector<std::size_t> uses_at_;
  std::vector<double> quickest_;  // by class
  double limit_ = -1;
  // For the current limit:
  std::vector<std::int32_t> kind_;  // by class; -1: none
  std::vector<std::size_t> first_, ranges_at_;
  std::vector<Range> ranges_;
  std::vector<double> seconds_, devices_;
  std::vector<std::int32_t> level_;
  std::vector<const StageOption*> source_;
};

}  // namespace planner
