// The Lagrangian half of stage slicing: for a limit T on stage times, the least sum of times is a
// shortest path through the layers with a price on every device; the price that makes the paths use
// as many devices as there are gives a lower bound, and often the answer. Of use inside
// stage_slicing only.
#pragma once

#include <optional>
#include <vector>

#include "planner/stage_slicing.hpp"

namespace planner {

// The problem, flattened, without options that another of the same class and size makes useless. A
// stage with k stages behind it is at level min(k + 1, levels): from the last level on, memory asks
// no more of it.
class SlicingGraph {
 public:
  explicit SlicingGraph(const SlicingProblem& problem);

  int layers() const { return problem_->layers; }
  int devices() const { return problem_->devices; }
  int levels() const { return levels_; }
  std::size_t classes() const { return first_.size() - 1; }
  // The options of class c are those from first(c) to first(c + 1) - 1, highest level first.
  std::size_t first(std::size_t c) const { return first_[c]; }
  double seconds(std::size_t option) const { return seconds_[option]; }
  double devices_of(std::size_t option) const { return devices_[option]; }
  int level(std::size_t option) const { return level_[option]; }  // the highest at which it fits
  double priced(std::size_t option, double price) const {
    return seconds_[option] + price * devices_[option];
  }
  // Least priced time no longer than `limit` of the options begin .. end - 1.
  double least_priced(std::size_t begin, std::size_t end, double price, double limit) const;
  const StageOption& source(std::size_t c, std::size_t option) const {
    return problem_->options[c][source_[option]];
  }
  // The classes of ranges that start at `first`, by end.
  const std::int32_t* row(int first) const {
    return problem_->range_class.data() + problem_->at(first, 0);
  }
  const SlicingProblem& problem() const { return *problem_; }
  double longest() const { return longest_; }  // of all options

 private:
  const SlicingProblem* problem_;
  int levels_ = 1;
  double longest_ = 0;
  void add(const std::vector<StageOption>& list, std::vector<std::uint32_t>& order);

  std::vector<std::size_t> first_;
  std::vector<double> seconds_, devices_;
  std::vector<std::int32_t> level_;
  std::vector<std::uint32_t> source_;  // index in the problem's list
};

struct SlicingPath {
  std::vector<SlicedStage> stages;
  double sum = 0, longest = 0;
  std::int64_t devices = 0;
};

class SlicingBound {
 public:
  explicit SlicingBound(const SlicingGraph& graph);

  // The best bound on the sum of times of stages no longer than `limit`; infinite when there is no
  // such slicing. Where the bound is met, `met()` is the slicing.
  double solve(double limit);
  const std::optional<SlicingPath>& met() const { return met_; }

  // Readies what follows, for a limit and a price that solve() found a finite bound with.
  void ready(double limit, double price);
  double price() const { return price_; }
  double limit() const { return limit_; }
  // Least priced time of one stage of a class at a level; of the layers from `layer` on in `level`
  // stages (the last level: or more); of the layers before, given that level behind them.
  double best(int level, std::size_t c) const { return best_[at_class(level, c)]; }
  double behind(int level, int layer) const { return behind_[at_layer(level, layer)]; }
  double before(int level, int layer) const { return before_[at_layer(level, layer)]; }

 private:
  struct Line {  // the priced time of one path, as a function of the price
    double sum = 0;
    double devices = 0;
  };
  std::size_t at_class(int level, std::size_t c) const {
    return static_cast<std::size_t>(level) * graph_->classes() + c;
  }
  std::size_t at_layer(int level, int layer) const {
    return static_cast<std::size_t>(level) * (static_cast<std::size_t>(graph_->layers()) + 1) +
           static_cast<std::size_t>(layer);
  }
  void price_classes(double price);
  void walk_back();
  bool evaluate(double price, Line& line);
  SlicingPath trace(double price) const;
  bool bracket(Line& few, Line& many);
  double close_in(Line few, Line many);
  bool met_by(const Line& line, double price);

  const SlicingGraph* graph_;
  double limit_ = 0, price_ = 0;
  std::vector<double> best_, behind_, before_;
  std::vector<std::int32_t> next_;  // end of the stage that starts at a layer, by level
  std::optional<SlicingPath> met_;
};

}  // namespace planner
