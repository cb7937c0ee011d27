// `shardplan export`: exports a plan to another program (Megatron-LM).
#pragma once

#include "planner/commands/session.hpp"

namespace planner {

// Throws costmodel::ConfigError for bad input.
CommandResult export_command(const Session& session);
// The same of a scenario of serving.
CommandResult export_serving(const Session& session);
// Where no target that a scenario's stack runs has words for a plan: that, and why of the first;
// else empty.
std::string export_note(const costmodel::Scenario& scenario, const costmodel::ParallelPlan& plan);

}  // namespace planner
