// The best plans with stages that need not be even: over every family of pipelines, layers are cut
// by stage slicing (1F1B, exactly for Alpa's objective) or dealt out evenly (interleaved), and then
// moved as long as the simulated iteration gets shorter.
//
// What a plan of ours can say is searched: one (t, d, c, e) for all stages. The bound is proved for
// every layout: no pipeline ends before its slowest rank has done all micro-batches. Moving layers
// is no proof of the best layout, and a start 10 % slower than the ranking is not moved at all: the
// gap says what that may have missed.
#pragma once

#include <functional>

#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/scenario/scenario.hpp"
#include "planner/search/grid_search.hpp"

namespace planner {

struct LayoutSearch {
  std::vector<costmodel::Estimate> plans;  // best first, even ones among them
  costmodel::Seconds lower_bound;          // no plan, of whatever layout, is faster
  std::uint64_t families = 0;              // of pipelines, their bounds computed
  std::uint64_t opened = 0;                // of these, that the bound did not rule out
  std::uint64_t sliced = 0;                // layouts cut exactly
  std::uint64_t improved = 0;              // layouts improved by simulation
  bool expired = false;  // time ran out: the bound holds, the plans may be bettered
};

// `even` is the search of the same scenario for even stages: its plans compete, so nothing that
// cannot beat them is looked at. The same answer for any number of threads, unless time runs out:
// `expired`, called from all of them, says when.
LayoutSearch search_layouts(const costmodel::Scenario& scenario, const SearchResult& even,
                            int threads, const std::function<bool()>& expired = {});

}  // namespace planner
