// `sweep` and `compare` of scenarios of serving.
#pragma once

#include <functional>

#include "planner/commands/session.hpp"
#include "planner/commands/sweep.hpp"

namespace planner {

// As sweep() does for training: every combination of the axes' values, one row a point. A plan that
// is left open is searched at every point.
Swept sweep_serving(const Session& session, const std::function<bool()>& stopped);

CommandResult compare_serving(const Session& session);

}  // namespace planner
