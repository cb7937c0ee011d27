// The Lagrangian part of stage slicing. For a limit T on stage times, the least sum of stage times
// with a price per device is a shortest path through the layers. The price at which the paths use
// exactly the available devices gives a lower bound, and often the optimum. Internal to
// stage_slicing.
#pragma once

#include <optional>
#include <vector>

#include "planner/solvers/slicing_graph.hpp"

namespace planner {

struct SlicingPath {
  std::vector<SlicedStage> stages;
  double sum = 0, longest = 0;
  std::int64_t devices = 0;
};

class SlicingBound {
 public:
  explicit SlicingBound(const SlicingGraph& graph) : graph_(&graph) {}

  // The best lower bound on the sum of stage times within the graph's limit; infinite when there is
  // no slicing. When a slicing attains the bound, `met()` returns it.
  double solve();
  const std::optional<SlicingPath>& met() const { return met_; }

  // Fills the tables below for a price at which solve() found a finite bound, at the graph's limit.
  void ready(double price);
  double price() const { return price_; }
  // Least priced time of: one stage of a kind at a level; the layers from `layer` on in `level`
  // stages (last level: or more); the layers before `layer`, if `level` stages follow.
  double best(int level, std::int32_t k) const { return best_[at(level, k)]; }
  double behind(int level, int layer) const { return behind_[at(level, layer)]; }
  double before(int level, int layer) const { return before_[at(level, layer)]; }

 private:
  struct Line {  // the priced time of one path, as a linear function of the price
    double sum = 0;
    double devices = 0;
  };
  std::size_t at(int level, int layer_or_kind) const {
    return static_cast<std::size_t>(layer_or_kind) * row_ + static_cast<std::size_t>(level);
  }
  double from(const SlicingGraph::Range& range, int level) const;
  void price_kinds(double price);
  void walk_back();
  bool evaluate(double price, Line& line);
  SlicingPath trace(double price) const;
  bool bracket(Line& few, Line& many);
  double close_in(Line few, Line many);
  bool met_by(const Line& line, double price);

  const SlicingGraph* graph_;
  double price_ = 0;
  std::size_t row_ = 0;                         // levels and none
  std::vector<double> best_, behind_, before_;  // levels together
  std::optional<SlicingPath> met_;
};

}  // namespace planner
