// `shardplan doctor`: what this machine and this build of the program can do, and a self-test. Of a
// training job that is slow knows explain-job.
#pragma once

#include "planner/commands/session.hpp"

namespace planner {

// Status 3 where something that every installation has is missing or wrong.
CommandResult doctor_command(const Session& session);

}  // namespace planner
