// `shardplan batch`: many scenarios in, one report each and an index out.
#pragma once

#include "planner/commands/session.hpp"

namespace planner {

// Every scenario is a process of its own, so that a bad one fails alone. What is done stands in the
// folder's journal: a batch that ended in whatever way goes on from there, and reports hold nothing
// of the clock, so that the folder ends with the same bytes. The exit status is 4 when a scenario
// failed, else 3 when one has no plan, else 0.
CommandResult batch_command(const Session& session);

}  // namespace planner
