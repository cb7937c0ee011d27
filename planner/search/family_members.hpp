// The members of the families that a ranking shows: `plan --all`.
#pragma once

#include <functional>
#include <vector>

#include "costmodel/estimate/estimate.hpp"
#include "costmodel/scenario/scenario.hpp"
#include "planner/search/strategy.hpp"

namespace planner {

// Of each row of a ranking, the other members of its family; empty: they were not asked for.
using FamilyMembers = std::vector<std::vector<costmodel::Estimate>>;

// For each plan of `ranked` the fastest others of its t, p, d, c and e, at most search.top less one
// of them: a search of that family alone, with the proof of any search. None of a plan with stages
// of own sizes, which is no family's.
FamilyMembers family_members(const costmodel::Scenario& scenario,
                             const std::vector<costmodel::Estimate>& ranked,
                             const SearchMethod& method = {},
                             const std::function<bool()>& stopped = {});

}  // namespace planner
