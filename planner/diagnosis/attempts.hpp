// Changed scenarios, tried one after the other: what fits in one becomes a remedy.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "costmodel/estimate/estimate.hpp"
#include "costmodel/scenario/scenario.hpp"
#include "planner/diagnosis/remedies.hpp"

namespace planner {

// A diagnosis under way: of searches, or of one plan that is kept.
struct Attempts : Diagnosis {
  const std::function<bool()>& stopped;
  const OtherStacks& stacks;
  const costmodel::PlanRequest& asked;
  const costmodel::ParallelPlan* from = nullptr;  // that settings change: one that does not fit
  const costmodel::ParallelPlan* own = nullptr;   // ... while it is kept
};

using Settings = std::vector<std::string>;  // as --set takes them

// The plan that `plan` names in a changed scenario, or one that takes longer: its search for
// layouts ends after a hundredth of a second, since tens of scenarios are tried. Nothing where
// nothing fits.
std::optional<costmodel::Estimate> best_plan_of(const costmodel::Scenario& changed,
                                                const Attempts& attempts);

// Adds a remedy: `best`, a plan of the changed scenario.
void add_remedy(const std::string& what, Settings settings, const costmodel::Scenario& changed,
                costmodel::Estimate best, Attempts& attempts);

// Records a changed scenario as a remedy if something fits in it; returns whether it does.
bool try_change(const costmodel::Scenario& changed, const std::string& what, Settings settings,
                Attempts& attempts);

// The quickest plan found so far, and what was changed for it.
struct Quickest {
  std::optional<costmodel::Estimate> best;
  std::string what;
  Settings settings;
  std::optional<costmodel::Scenario> scenario;
  void offer(std::optional<costmodel::Estimate> plan, const std::string& name, const Settings& set,
             const costmodel::Scenario& changed);
  void record_in(Attempts& attempts) const;
};

}  // namespace planner
