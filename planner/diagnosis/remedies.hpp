// When nothing fits or nothing is valid: the obstacles, and the nearest changes that would help.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "costmodel/scenario/scenario.hpp"
#include "planner/search/grid_search.hpp"

namespace planner {

// Stacks by which a scenario may be read again.
struct OtherStacks {
  std::vector<std::string> names;
  std::function<costmodel::Scenario(const std::string& name)> with;  // throws ConfigError
  // Its fine-tuning by another method, on its own stack or on another one. Throws ConfigError.
  std::function<costmodel::Scenario(const std::string& method, const std::string& stack)> adapted =
      {};
  // The command that plans the scenario, to which --set is added; empty: none is printed.
  std::string command = {};
};

struct Diagnosis {
  std::vector<std::string> obstacles;  // "t 8 · p 1 · d 2: needs 412 GiB of 79.2 (optimizer 260)"
  // Those that change least first: "32 devices instead of 16: t 8 · p 4 · d 1 fits in 71 GiB".
  std::vector<std::string> remedies;
  std::vector<std::string> tried;  // what was tried; printed when there is no remedy
};

// A remedy is named only after a search of the changed scenario has found a plan that fits. Polls
// `stopped`, and once it returns true tries no further changes.
Diagnosis diagnose(const costmodel::Scenario& scenario, const SearchResult& failed,
                   const OtherStacks& stacks = {}, const std::function<bool()>& stopped = {});

}  // namespace planner
