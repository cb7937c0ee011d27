// The plan of serving that a command evaluates: the scenario's own, or the best where it has none.
#pragma once

#include <optional>

#include "costmodel/serving/serving_spec.hpp"

namespace planner {

// Sizes, pools of devices and the weights' format as the scenario has them; where it leaves all
// sizes or the format open, the best plan's. Empty when none fits and keeps what is asked.
std::optional<costmodel::ServingScenario> settled_serving(
    const costmodel::ServingScenario& scenario);
inline constexpr const char* no_serving_plan = "no plan fits and keeps what is asked";

}  // namespace planner
