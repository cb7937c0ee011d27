// `shardplan sweep` of a scenario of serving.
#pragma once

#include <functional>

#include "planner/commands/session.hpp"
#include "planner/commands/sweep.hpp"

namespace planner {

// As sweep() does for training. A plan that is left open is searched at every point.
Swept sweep_serving(const Session& session, const std::function<bool()>& stopped);

CommandResult sweep_serving_command(const Session& session);

}  // namespace planner
