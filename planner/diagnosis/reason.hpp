// Why a plan takes the time it takes, in words, and what each knob one step away would cost.
#pragma once

#include <string>
#include <vector>

#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/scenario/scenario.hpp"

namespace planner {

struct Share {
  std::string name;  // "pipeline bubble"
  costmodel::Seconds time;
  double of_iteration = 0;
};

// The parts of the iteration that are not zero, in the order of the contract; they add up.
std::vector<Share> shares(const costmodel::Estimate& estimate);

// One sentence a line: the largest part, the largest losses, what memory does.
std::vector<std::string> reasons(const costmodel::Estimate& estimate);

// "+1.20 s bubble, +0.31 s recomputation": what `other` loses to `best`, largest first; gains are
// told too.
std::string difference(const costmodel::Estimate& best, const costmodel::Estimate& other);

// The keys of the plan that the scenario gives a value, as it writes them: the search keeps them.
std::vector<std::string> fixed_keys(const costmodel::PlanRequest& plan);

struct Step {
  std::string knob;    // "micro_batch"
  std::string change;  // "1 -> 2"
  costmodel::Seconds iteration;
  costmodel::Bytes peak;
  bool fits = false;
  bool breaks_fixed = false;  // moves a key that the scenario fixes
};

// Each knob one step up and down, the others kept, also where the scenario fixes them; dp takes up
// what tp and pp leave, vpp falls back to what divides.
std::vector<Step> one_step_away(const costmodel::Estimate& from,
                                const costmodel::Scenario& scenario,
                                costmodel::Evaluator& evaluator);

}  // namespace planner
