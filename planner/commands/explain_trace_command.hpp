// `shardplan explain-job JOB TRACE ...`: a profiler's traces of a job next to what is predicted.
#pragma once

#include "planner/commands/session.hpp"

namespace planner {

// Whether what stands after the job are traces. Throws ConfigError for several files that are not.
bool names_traces(const Options& options);

CommandResult explain_traces(const Session& session, const costmodel::Scenario& scenario,
                             const costmodel::ParallelPlan& plan);

}  // namespace planner
