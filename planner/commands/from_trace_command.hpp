// `shardplan calibrate --from-trace`: constants by traces of one's own runs, alone or with logs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "planner/accuracy/trace_fit.hpp"
#include "planner/commands/commands.hpp"
#include "planner/commands/session.hpp"

namespace planner {

// "run1.yaml:run1.log": a job and what it wrote; job: empty where --job is meant, or the file
// states its own.
struct JobLog {
  std::string job, log;
};
// Names may hold colons too: a word that is a file is a log, and else what stands after the last
// colon after which a file stands.
JobLog job_and_file(const std::string& word, const std::string& flag);

struct TraceCalibration {
  std::vector<FittedTrace> traces;
  costmodel::OwnRuns own;     // empty without traces
  costmodel::Value cluster;   // as the scenario names it
  costmodel::Seconds launch;  // of the stack's description
  std::vector<OwnRun> runs;
};

// Of --from-trace, none where it is not given.
TraceCalibration calibrated_by_traces(const Session& session,
                                      const costmodel::SiteSpread& published,
                                      std::vector<std::string>& notes);

// The report, and the cluster's file, of traces without logs.
CommandResult from_traces(const Session& session, const TraceCalibration& traced,
                          const costmodel::SiteSpread& published, CommandResult result);

// What a scenario has as many of as its run has ranks: "devices" by cluster.devices.
struct ExpectedRanks {
  std::int64_t count = 0;
  std::string_view what, key;
};
// Why a trace of so many ranks (0: not recorded) is of another run than the scenario; empty: not.
std::string other_ranks(const std::string& file, int ranks, const ExpectedRanks& expected);

// A trace of a run, or of several ranks of it.
ReadTrace read_job_trace(const std::vector<std::string>& files, const Attributor& attributor);
// One more rank's trace of a run, of which the first states what all share.
void add_rank(ReadTrace& read, const std::string& file, const Trace& trace,
              const TraceTimes& times);

}  // namespace planner
