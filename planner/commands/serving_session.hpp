// What commands on a scenario of serving (`workload: inference`) share, as session.hpp has it of
// training.
#pragma once

#include <string>

#include "costmodel/serving/serving_spec.hpp"
#include "planner/commands/session.hpp"

namespace planner {

// Throws ConfigError for a flag that goes with training alone.
void refuse_training_flags(const Options& options);

// The scenario named on the command line with `--set` applied. Throws ConfigError, also for a flag
// of training and when an output cannot be written, or is the scenario's file.
costmodel::ServingScenario load_serving(const Session& session);

// The scenario as YAML with the plan of `chosen` written out; it can be loaded again.
std::string serving_yaml(const Session& session, const costmodel::ServingScenario& chosen);

// The result where no plan fits and keeps what is asked: what would help.
CommandResult without_serving_plan(const Session& session,
                                   const costmodel::ServingScenario& scenario);

}  // namespace planner
