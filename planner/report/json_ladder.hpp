// How many devices a training run needs, in JSON.
#pragma once

#include <string>

#include "costmodel/scenario/scenario.hpp"
#include "planner/search/device_ladder.hpp"

namespace planner {

// The JSON that `plan` prints of the number of devices chosen, with the key "devices": the limits,
// the numbers tried and the one chosen (null: none).
std::string with_ladder(const std::string& plan_json, const DeviceLadder& ladder,
                        const RunLimits& limits, const costmodel::Scenario& scenario);

// The same where no number of devices keeps the limits: "scenario", an empty list "plans", and
// "devices".
std::string ladder_json(const DeviceLadder& ladder, const RunLimits& limits,
                        const costmodel::Scenario& scenario);

}  // namespace planner
