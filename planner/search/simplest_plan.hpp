// The plan that is chosen: of those that are within search.simpler_within of the fastest, the
// simplest. No measurement of a job separates two such plans, but each feature must be configured,
// understood and kept working.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "costmodel/estimate/estimate.hpp"
#include "costmodel/scenario/scenario.hpp"
#include "planner/search/grid_search.hpp"

namespace planner {

// The time that a plan chosen for being simpler may take.
costmodel::Seconds most_time(costmodel::Seconds fastest, const costmodel::Scenario& scenario);

// The simplest of `ranked` and of all even plans, `even`'s space, in at most that time; of as
// simple ones the fastest. Of even plans that is exact, whatever the ranking holds. `ranked` has
// the fastest first.
costmodel::Estimate simplest_plan(const costmodel::Scenario& scenario,
                                  const std::vector<costmodel::Estimate>& ranked,
                                  const SearchResult& even, costmodel::Evaluator& evaluator);

// A plan whose layers the search has cut, in fewer virtual stages with the layers cut anew: the
// fewest that take at most `most`. Nothing where there is none.
std::optional<costmodel::ParallelPlan> fewer_virtual_stages(
    const costmodel::Scenario& scenario, const costmodel::ParallelPlan& plan,
    costmodel::Seconds most, const std::function<bool()>& stopped = {});

// `ranked` with `chosen` first, in the place of its family; no more rows than before, or than
// search.top.
std::vector<costmodel::Estimate> chosen_first(std::vector<costmodel::Estimate> ranked,
                                              const costmodel::Estimate& chosen,
                                              const costmodel::Scenario& scenario);

}  // namespace planner
