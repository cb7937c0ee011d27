// The `explain-job` command: why a job is slow, and what would help.
#pragma once

#include "planner/commands/session.hpp"

namespace planner {

// The first operand is a scenario, or a Megatron-LM launch script, argument list or log with its
// arguments, whose devices --cluster names (read_job); the second the job's log, without which
// there is only the prediction. Throws ConfigError.
CommandResult explain_job_command(const Session& session);

}  // namespace planner
