// The plan that a command evaluates: the scenario's own, with what it leaves to the search chosen
// as `plan` chooses it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "costmodel/plan/parallel_plan.hpp"
#include "costmodel/scenario/scenario.hpp"
#include "costmodel/serving/serving_spec.hpp"

namespace planner {

struct SettledPlan {
  costmodel::ParallelPlan plan;
  bool nothing_fits = false;       // whatever the keys written auto are: memory_limit() is exceeded
  std::vector<std::string> notes;  // what a reader of the scenario might not expect
};

// Missing keys at their defaults; keys with the value `auto` chosen by the search, which keeps
// search.memory_margin free, or, when none of their values leaves so much, those with the least
// peak. Uneven layouts are tried where stage_layers is one of these keys, as in `plan: auto`. Empty
// when no choice is valid. `threads` do not change the answer. Throws ConfigError for a plan that
// breaks a rule; where no choice obeys them, for `auto` at its default. `refusal`: why a plan is of
// no use; empty: it is. The fastest of use is then taken, with a note: of all even plans that fit,
// and of the ranked ones of other layouts.
using PlanRefusal = std::function<std::string(const costmodel::ParallelPlan&)>;
std::optional<SettledPlan> settled_plan(const costmodel::Scenario& scenario, int threads = 1,
                                        const PlanRefusal& refusal = {});
inline constexpr const char* no_valid_choice = "no choice of the keys written auto is valid";

// The same of a run that has run, which had all of the memory: the fastest plan.
std::optional<SettledPlan> settled_run(costmodel::Scenario scenario);

// The same of serving: sizes, pools of devices and the weights' format as the scenario has them;
// where it leaves all sizes or the format open, the best plan's. Empty when none fits and keeps
// what is asked.
std::optional<costmodel::ServingScenario> settled_serving(
    const costmodel::ServingScenario& scenario);
inline constexpr const char* no_serving_plan = "no plan fits and keeps what is asked";

}  // namespace planner
