// The commands on a scenario of serving (`workload: inference`).
#pragma once

#include "planner/commands/session.hpp"

namespace planner {

// Whether the scenario named on the command line is one of serving.
bool is_serving(const Session& session);

CommandResult evaluate_serving(const Session& session);
CommandResult explain_serving(const Session& session);
CommandResult plan_serving(const Session& session);
CommandResult export_serving(const Session& session);
// Of evidence of serving; `--leave-one-source-out` predicts each source by the others.
CommandResult validate_serving(const Session& session);

}  // namespace planner
