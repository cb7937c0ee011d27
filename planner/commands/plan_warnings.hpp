// Warnings about a plan that does not fit in memory, or that the scenario does not specify.
#pragma once

#include <string>
#include <vector>

#include "costmodel/estimate/estimate.hpp"
#include "costmodel/scenario/scenario.hpp"
#include "planner/commands/options.hpp"

namespace planner {

// One warning per line, if the plan does not fit: names the stage that is fullest relative to its
// own devices.
std::vector<std::string> memory_warnings(const costmodel::Estimate& estimate);

// memory_warnings(), and, for the two commands that then use the best plan, that the scenario has
// no plan.
std::vector<std::string> plan_warnings(const Options& options, const costmodel::Scenario& scenario,
                                       const costmodel::Estimate& estimate);

// Notes as lines for standard error.
std::vector<std::string> note_lines(const std::vector<std::string>& notes);

}  // namespace planner
