// Inter-operator parallelism as Alpa states it (Zheng et al. 2022, arXiv:2201.12023, section 5.1,
// equations 2 to 4): layers cut into stages, stages put on submeshes that use up the cluster, so
// that
//     (sum of stage times) + (m - 1) · (longest stage time)
// is least, and every stage fits in memory with the micro-batches that 1F1B keeps in flight there:
// as many as there are stages from it to the last one, at most m.
//
// Exact. The longest time T is searched by branch and bound over intervals of T; for one T the sum
// is bounded by a Lagrange multiplier on the devices (slicing_bound) and, where that leaves a gap,
// found by a dynamic program over the states that the bound cannot rule out (slicing_paths).
// Nothing of Alpa's O(L³ · D · submeshes) table for each T is ever made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace planner {

inline constexpr int any_in_flight = std::numeric_limits<int>::max();

// One way to run a stage: so many devices (a submesh), one micro-batch's forward and backward in
// seconds, and how many micro-batches may be in flight before memory is full (0: it never fits).
struct StageOption {
  int devices = 1;
  double seconds = 0;
  int most_in_flight = any_in_flight;
  int tag = 0;  // the caller's
};

// Ranges of layers that cost the same share a class, so that a thousand equal layers need a
// thousand lists of options and not half a million.
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
  // Every range without a class, nothing else changed.
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
  std::uint64_t intervals = 0;  // of the longest time, bounded
  std::uint64_t programs = 0;   // dynamic programs run
  std::uint64_t labels = 0;     // states these kept
};

struct Slicing {
  std::vector<SlicedStage> stages;  // first to last; empty when there is none
  double sum = 0, longest = 0;      // seconds
  double objective = std::numeric_limits<double>::infinity();
  // No slicing is better; below `objective` only when time ran out. Infinite when there is none.
  double lower_bound = 0;
  std::string reason;  // why there is none; empty where there is one
  SlicingStatistics statistics;
};

// The best slicing. Among equals the same one for the same input. `expired` is asked now and then;
// once it says yes, the best so far is returned with what has been proved. Never throws; options
// that take for ever (infinite or not a number) are left out.
Slicing best_slicing(const SlicingProblem& problem, const std::function<bool()>& expired = {});

// Alpa's objective of a slicing.
double slicing_objective(const std::vector<SlicedStage>& stages, std::int64_t micro_batches);

// Submeshes of a cluster of whole nodes: 1, 2, 4, ... devices of a node, then one node and more
// (section 5.2 there), as device counts, ascending, none above `devices`.
std::vector<int> submeshes(int devices, int devices_per_node);

}  // namespace planner
