// The commands on a scenario of serving (`workload: inference`).
#pragma once

#include <optional>

#include "costmodel/serving/serving_spec.hpp"
#include "planner/commands/session.hpp"

namespace planner {

// Whether the scenario named on the command line is one of serving.
bool is_serving(const Session& session);

// Of a scenario without sizes the best plan. Nothing: none keeps the bound.
std::optional<costmodel::ServingScenario> settled_serving(
    const costmodel::ServingScenario& scenario);
// Throws ConfigError for a flag that goes with training alone.
void refuse_training_flags(const Options& options);

CommandResult evaluate_serving(const Session& session);
CommandResult explain_serving(const Session& session);
CommandResult plan_serving(const Session& session);
CommandResult export_serving(const Session& session);
// Of evidence of serving; `--leave-one-source-out` predicts each source by the others.
CommandResult validate_serving(const Session& session);

}  // namespace planner
