// What someone should know before using a plan that does not fit, or that nobody asked for.
#pragma once

#include <string>
#include <vector>

#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/scenario/scenario.hpp"
#include "planner/commands/options.hpp"

namespace planner {

// One a line. That it does not fit, told of the stage that is fullest for its own devices.
std::vector<std::string> memory_warnings(const costmodel::Estimate& estimate);

// That too, and of a scenario without a plan: the two commands that use the best one instead.
std::vector<std::string> plan_warnings(const Options& options, const costmodel::Scenario& scenario,
                                       const costmodel::Estimate& estimate);

}  // namespace planner
