// The best plans with uneven stages. For every family of pipelines, layers are partitioned by stage
// slicing (1F1B; exact for Alpa's objective) or evenly (interleaved), then moved between stages
// while the simulated iteration gets shorter.
//
// All stages share one (t, d, c, e). The lower bound holds for every layout: no pipeline ends
// before its slowest rank has processed all micro-batches. Moving layers proves nothing about
// optimality, and a start that is 10 % slower than the ranking is not improved at all: the gap to
// the bound limits what that may have missed.
#pragma once

#include <functional>

#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/scenario/scenario.hpp"
#include "planner/search/grid_search.hpp"

namespace planner {

struct LayoutSearch {
  std::vector<costmodel::Estimate> plans;  // best first, including even ones
  costmodel::Seconds lower_bound;          // of plans with any layout
  std::uint64_t families = 0;              // families of pipelines with a bound
  std::uint64_t opened = 0;                // those that the bound did not prune
  std::uint64_t sliced = 0;                // layouts found by exact slicing
  std::uint64_t improved = 0;              // layouts improved by local search
  bool expired = false;  // time ran out: the bound holds, the plans may be improvable
};

// `even` is the search result of the same scenario for even stages: its plans compete, so whatever
// cannot beat them is skipped. The result does not depend on the number of threads, unless time
// runs out. `expired` is called from all threads.
LayoutSearch search_layouts(const costmodel::Scenario& scenario, const SearchResult& even,
                            int threads, const std::function<bool()>& expired = {});

}  // namespace planner
