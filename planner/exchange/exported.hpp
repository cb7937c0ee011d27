// What an export writes, and how it refuses a plan that the framework cannot run.
#pragma once

#include <string>
#include <vector>

#include "costmodel/plan/parallel_plan.hpp"
#include "costmodel/scenario/scenario.hpp"

namespace planner {

struct Exported {
  std::string text;                // what a user runs: a script
  std::string json;                // the same as data
  std::vector<std::string> notes;  // where the framework differs from the cost model's assumptions
};

// Throws costmodel::ConfigError for the first violation, at the place of its key.
void refuse_first(const std::vector<costmodel::Violation>& broken,
                  const costmodel::Scenario& scenario);

}  // namespace planner
