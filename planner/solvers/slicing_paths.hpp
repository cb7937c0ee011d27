// The exact part of stage slicing: the least sum of stage times for a limit on the longest, by a
// dynamic program from the last layer to the first over (layer, following stages, devices used),
// restricted to states that the Lagrangian bound cannot rule out. Internal to stage_slicing.
#pragma once

#include <functional>
#include <vector>

#include "planner/solvers/slicing_bound.hpp"

namespace planner {

class SlicingPaths {
 public:
  SlicingPaths(const SlicingGraph& graph, const SlicingBound& bound);

  enum class Outcome { found, none, expired };
  // The best slicing within the graph's limit whose sum is at most `cutoff`. `bound` must be
  // ready().
  Outcome solve(double cutoff, const std::function<bool()>& expired);
  const SlicingPath& path() const { return path_; }
  std::uint64_t labels() const { return labels_made_; }

 private:
  struct Label {
    double seconds;        // of the stages from this layer on
    double priced;         // the same, with the price of their devices
    std::int32_t devices;  // used
    std::int32_t end;      // end of the first of these stages
    std::int32_t option;   // option of that stage, index within its kind
    std::int32_t rest;     // label of the following stages
    std::int8_t same;      // 1: that label is on the same level
  };
  struct Reach {  // the best state for a number of devices, while a layer is processed
    double seconds;
    std::int32_t end, option, rest;
    std::int8_t same;
  };
  struct Priced {
    double value;  // seconds plus the price of the devices
    std::int32_t index;
  };

  std::vector<Label>& at(int level, int layer) {
    return labels_[static_cast<std::size_t>(level) *
                       (static_cast<std::size_t>(graph_->layers()) + 1) +
                   static_cast<std::size_t>(layer)];
  }
  const std::vector<Priced>& options_of(std::int32_t kind);
  void extend(int level, int layer, const SlicingGraph::Range& range, bool same);
  void collect(int level, int layer);
  bool trace();

  const SlicingGraph* graph_;
  const SlicingBound* bound_;
  double spare_ = 0;  // cutoff plus the price of all devices
  double slack_ = 0;  // largest excess of a priced path over the best one
  std::vector<std::vector<Label>> labels_;
  std::vector<std::vector<Priced>> options_;  // by kind, cheapest first; filled on first use
  std::vector<char> made_;
  std::vector<Reach> reach_;           // by devices
  std::vector<std::int32_t> touched_;  // devices reached
  std::vector<double> shorter_;        // by devices: best of the levels below, at this layer
  std::vector<std::int32_t> shortened_;
  SlicingPath path_;
  std::uint64_t labels_made_ = 0;
};

}  // namespace planner
