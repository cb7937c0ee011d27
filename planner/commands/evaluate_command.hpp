// The commands on one plan: `evaluate` predicts it, `explain` shows the prediction as worked
// formulas, `explain-job` states why a job is slow, and what would help.
#pragma once

#include "planner/commands/session.hpp"

namespace planner {

// Throws costmodel::ConfigError for bad input.
CommandResult evaluate_command(const Session& session);
// The same of a scenario of serving.
CommandResult evaluate_serving(const Session& session);

// Throws costmodel::ConfigError for bad input.
CommandResult explain_command(const Session& session);
// The same of a scenario of serving.
CommandResult explain_serving(const Session& session);

// The first operand is a scenario, or a Megatron-LM launch script, argument list or log with its
// arguments, whose devices --cluster names (read_job); the second the job's log, without which
// there is only the prediction. Throws ConfigError.
CommandResult explain_job_command(const Session& session);

}  // namespace planner
