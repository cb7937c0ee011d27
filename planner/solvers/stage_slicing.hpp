// Inter-operator parallelism as formulated by Alpa (Zheng et al. 2022, arXiv:2201.12023, section
// 5.1, equations 2 to 4): partition layers into stages and assign stages to submeshes that use all
// devices, such that
//   (sum of stage times) + (m - 1) · (longest stage time)
// is minimal and every stage fits in memory with the micro-batches that 1F1B keeps in flight there:
// the number of stages from it to the last one, at most m.
//
// Exact. Branch and bound over intervals of the longest time T; for one T, a Lagrange multiplier on
// the devices bounds the sum (slicing_bound), and a dynamic program over the states that the bound
// cannot rule out closes a remaining gap (slicing_paths). Alpa's O(L³ · D · submeshes) table per T
// is never built.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace planner {

inline constexpr int any_in_flight = std::numeric_limits<int>::max();

// One way to run a stage: the number of devices (a submesh), seconds of forward and backward of one
// micro-batch, and the micro-batches in flight that fit in memory (0: it never fits).
struct StageOption {
  int devices = 1;
  double seconds = 0;
  int most_in_flight = any_in_flight;
  int tag = 0;  // not used here; identifies the option for the caller
  // As submesh_cut wants them, in seconds: forward and backward of a micro-batch; the reduction of
  // gradients behind the last one, and what follows that.
  double forward = 0, backward = 0, reduction = 0, after = 0;
  // Not used here: the parts of forward and backward that devices compute, and the stages of the
  // pipeline that they are of.
  double computed_forward = 0, computed_backward = 0;
  int stages = 1;
};

// Layer ranges of equal cost share a class: a thousand equal layers need a thousand option lists
// instead of half a million.
struct SlicingProblem {
  int layers = 0;
  int devices = 0;
  std::int64_t micro_batches = 1;         // m
  std::vector<std::int32_t> range_class;  // of layers first .. end - 1, at `at`; -1: no stage
  std::vector<std::vector<StageOption>> options;  // by class, in any order

  std::size_t at(int first, int end) const {
    return static_cast<std::size_t>(first) * (static_cast<std::size_t>(layers) + 1) +
           static_cast<std::size_t>(end);
  }
  // Sets every range to have no class.
  void clear_ranges() {
    const auto side = static_cast<std::size_t>(layers) + 1;
    range_class.assign(side * side, -1);
  }
};

struct SlicedStage {
  int first = 0, end = 0;  // layers first .. end - 1
  StageOption option;
};

struct SlicingStatistics {
  std::uint64_t intervals = 0;  // intervals of the longest time
  std::uint64_t programs = 0;   // dynamic programs run
  std::uint64_t labels = 0;     // states kept by them
};

struct Slicing {
  std::vector<SlicedStage> stages;  // first to last; empty when there is none
  double sum = 0, longest = 0;      // seconds
  double objective = std::numeric_limits<double>::infinity();
  // Lower bound on the objective; below `objective` only when time ran out. Infinite when there is
  // no slicing.
  double lower_bound = 0;
  std::string reason;  // why there is no slicing; empty when there is one
  SlicingStatistics statistics;

  bool found() const { return !stages.empty(); }
};

// The best slicing; ties are broken deterministically. `expired` is polled; once it returns true,
// the best slicing so far is returned with the bound proved so far. Never throws; options whose
// time is infinite or NaN are ignored.
Slicing best_slicing(const SlicingProblem& problem, const std::function<bool()>& expired = {});

// Submeshes of a cluster of complete nodes: 1, 2, 4, ... devices of a node, then one or more nodes
// (section 5.2 there), as device counts, ascending, at most `devices`.
std::vector<int> submeshes(int devices, int devices_per_node);

}  // namespace planner
