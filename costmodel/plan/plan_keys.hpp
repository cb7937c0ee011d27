// The keys of `plan`, one row each: the name, what it may be, what it means, how it is read and how
// a resolved plan writes it. YAML, JSON, CSV and `list keys` walk these rows, so what one of them
// prints the reader takes.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "costmodel/config/key.hpp"
#include "costmodel/plan/plan_request.hpp"

namespace costmodel {

struct PlanKey {
  // What leaves the choice to the search: nothing; `auto` at the key; that, or `plan: auto`.
  enum class Searched { never, by_key, by_plan };

  Key<PlanRequest> row;
  // As a scenario writes it; null where the plan has none. No function: what it says is written by
  // another key.
  std::function<Value(const ParallelPlan&)> value;
  // Whether a scenario with the plan's other keys means the same without this one.
  std::function<bool(const ParallelPlan&)> implied;
  Searched searched = Searched::never;
  std::string_view title = {};  // on pages, where the name alone is not clear
};

// In the order in which they are read and written.
const std::vector<PlanKey>& plan_key_rows();

// Those that mean something to a model with experts alone, and are no sizes.
std::vector<std::string_view> expert_recipe_keys();

// The keys of `plan`, of its stages ("plan.stages[].tp") and of its replicas.
std::vector<KeyText> plan_keys();

// The plan as a YAML map: every key but those that are implied.
Value to_value(const ParallelPlan& plan);

// A value of a plan in one line of YAML: "{granularity: full, layers: 3}".
std::string flow_text(const Value& value);

}  // namespace costmodel
