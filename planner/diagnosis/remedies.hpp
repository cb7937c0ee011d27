// When nothing fits or nothing is valid: the obstacles, and the nearest changes that would help;
// with what a plan that does not fit would.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "costmodel/scenario/scenario.hpp"
#include "planner/search/grid_search.hpp"

namespace planner {

// The command that makes a change, as text: the one that was typed, with these settings in place of
// those that it gives the same keys.
using ChangedCommand = std::function<std::string(const std::vector<std::string>& settings)>;

// Stacks by which a scenario may be read again.
struct OtherStacks {
  std::vector<std::string> names;
  std::function<costmodel::Scenario(const std::string& name)> with;  // throws ConfigError
  // Its fine-tuning by another method, on its own stack or on another one. Throws ConfigError.
  std::function<costmodel::Scenario(const std::string& method, const std::string& stack)> adapted =
      {};
  ChangedCommand command = {};  // empty: none is printed
};

// A change with which something fits, and what then does.
struct Remedy {
  std::string what;                   // "micro_batch 8 -> 2"
  std::vector<std::string> settings;  // as --set takes them: {"plan.micro_batch=2"}
  costmodel::Estimate best;
  double probability = 0;          // that it fits
  costmodel::Seconds device_time;  // of all devices, for a token
  ChangedCommand command;          // empty: none is printed
  std::string sentence() const;
};
std::vector<std::string> sentences_of(const std::vector<Remedy>& remedies);

struct Diagnosis {
  std::vector<std::string> obstacles;  // "t 8 · p 1 · d 2: needs 412 GiB of 79.2 (optimizer 260)"
  std::vector<Remedy> remedies;    // those that take least time of the devices for a token first
  std::vector<std::string> tried;  // what was tried; printed when there is no remedy
};

// A remedy is named only after a search of the changed scenario has found a plan that fits. Polls
// `stopped`, and once it returns true tries no further changes.
Diagnosis diagnose(const costmodel::Scenario& scenario, const SearchResult& failed,
                   const OtherStacks& stacks = {}, const std::function<bool()>& stopped = {});

// Changes with which a plan that does not fit would: of a single key of the plan, to the nearest
// value that fits, and of what is trained, with the plan as it is; and the best plan of the
// scenario; in the same order. Where no plan fits, changes of the scenario with their best plans;
// and at last all of these in all of the memory. Empty for one that fits and where stages have
// sizes of their own.
std::vector<Remedy> fitting_changes(const costmodel::Estimate& estimate,
                                    const costmodel::Scenario& scenario,
                                    const OtherStacks& stacks = {},
                                    const std::function<bool()>& stopped = {});

}  // namespace planner
