// The best plans with uneven stages, for every family of pipelines.
//
// 1F1B with one chunk a rank: all layouts. pipeline_cut finds the cut of the layers with the least
// bound, which knows the bubble, transfers, gradients and optimizer; its plan is simulated, and
// improved by moving layers where the bound is not reached; where few layouts may still be better,
// all are tried, and the best is proved. Interleaved: the most even layout, and
// the one that gives ranks equal times, each with a bound of its own, and what moving layers makes
// of them; of other layouts of chunks nothing is proved.
//
// All stages share one (t, d, c, e). A start far slower than the ranking is not improved: the gap
// to the bound limits what that may have missed.
#pragma once

#include <cstdint>
#include <functional>

#include "costmodel/estimate/estimate.hpp"
#include "costmodel/scenario/scenario.hpp"
#include "planner/search/effort.hpp"
#include "planner/search/grid_search.hpp"

namespace planner {

struct LayoutSearch {
  std::vector<costmodel::Estimate> plans;  // best first, including even ones
  costmodel::Seconds lower_bound;          // of the plans of this space
  std::uint64_t families = 0;              // families of pipelines with a bound
  std::uint64_t opened = 0;                // those that the bound did not prune
  std::uint64_t sliced = 0;                // plans of 1F1B whose layers were cut
  std::uint64_t improved = 0;              // layouts improved by local search
  std::uint64_t effort = 0;                // stages looked at
  bool expired = false;  // time or effort ran out: the bound holds, the plans may be improvable
  bool spent = false;    // it was the effort
};

// What a search without a time limit does at most; ten seconds or so.
inline constexpr std::uint64_t usual_effort = std::uint64_t{1} << 30;

// `even` is the search result of the same scenario for even stages: its plans compete, so whatever
// cannot beat them is skipped. Families of pipelines are looked at until `effort` is spent, a
// family with at most a part of it. The result does not depend on the number of threads, unless
// time runs out. `expired` is called from all threads.
LayoutSearch search_layouts(const costmodel::Scenario& scenario, const SearchResult& even,
                            int threads, const std::function<bool()>& expired = {},
                            std::uint64_t effort = usual_effort);

}  // namespace planner
