// `shardplan calibrate --from-log`: a cluster of one's own by the logs of one's own runs.
#pragma once

#include "planner/commands/session.hpp"

namespace planner {

CommandResult from_log_command(const Session& session);

}  // namespace planner
