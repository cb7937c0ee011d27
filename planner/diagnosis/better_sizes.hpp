// Where devices and batch divide so badly that only uneven stages obey the rules: numbers of
// devices and batches near them that divide well, and what they would give.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "costmodel/estimate/estimate.hpp"
#include "costmodel/scenario/scenario.hpp"

namespace planner {

// One sentence each, of the quickest among more devices (up to a quarter), among fewer, and among
// batches within 2 %: where even stages on them are faster than `best`, the best plan of the
// scenario. Polls `stopped`.
std::vector<std::string> better_sizes(const costmodel::Scenario& scenario,
                                      const costmodel::Estimate& best,
                                      const std::function<bool()>& stopped = {});

}  // namespace planner
