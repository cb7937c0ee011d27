// The `explain-job` command: why a job is slow, and what would help.
#pragma once

#include "planner/commands/session.hpp"

namespace planner {

// The second operand is the job's log; without it there is only the prediction. Throws ConfigError.
CommandResult explain_job_command(const Session& session);

}  // namespace planner
