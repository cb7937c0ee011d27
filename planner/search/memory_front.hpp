// The front of iteration time and memory: the chosen plan, and others that need less memory a
// device, each the one that `plan` chooses of those that need no more. Every row is its search with
// a lower limit, so it is proved like the best plan.
#pragma once

#include <array>
#include <functional>
#include <vector>

#include "costmodel/estimate/estimate.hpp"
#include "costmodel/scenario/scenario.hpp"
#include "planner/search/strategy.hpp"

namespace planner {

// The parts of the fastest plan's memory within which others are searched, and by how much at least
// each needs less than the one before it.
inline constexpr std::array front_shares{0.95, 0.9, 0.8, 0.65, 0.5};
inline constexpr double least_saving = 0.05;

// `fastest` first, the best plan of the scenario; then one for each share, until nothing fits.
// Devices are those of the scenario: `shardplan sweep` compares clusters. Stops early, with the
// rows that are proved, once `expired` returns true.
std::vector<costmodel::Estimate> memory_front(const costmodel::Scenario& scenario,
                                              const costmodel::Estimate& fastest,
                                              const SearchMethod& method = {},
                                              const std::function<bool()>& expired = {});

}  // namespace planner
