// An engine's launch as JSON: {"arguments": {NAME: VALUE}, "notes"}; of pools {"prefill":
// {"arguments"}, "decode": {"arguments"}, "notes"}.
#pragma once

#include <string>

#include "planner/frameworks/engine_launch.hpp"

namespace planner {

// An argument without a value is true.
std::string to_json(const EngineLaunch& launch);

}  // namespace planner
