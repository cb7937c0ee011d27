// Where the time of a traced iteration goes, next to what is predicted, and what each of the
// differences would give back.
#pragma once

#include <string>
#include <vector>

#include "planner/accuracy/trace_fit.hpp"
#include "planner/report/plan_report.hpp"
#include "planner/traces/trace.hpp"

namespace planner {

struct TracedRank {
  std::string file;
  int rank = 0;
  TraceTimes times;
};

// What an iteration would be shorter by.
struct TraceGain {
  std::string what, remedy;
  costmodel::Seconds gained;
};

struct TraceExplanation {
  FittedTrace trace;  // the mean of its ranks
  std::vector<TracedRank> ranks;
  std::vector<TraceGain> gains;  // largest first
};

// Of its trace and ranks those of half of a hundredth of the iteration or more. `fixed`: what an
// iteration costs in no kernel whatever it runs.
std::vector<TraceGain> gains_of(const TraceExplanation& all, costmodel::Seconds fixed);

std::string explanation_report(const TraceExplanation& all, const ReportStyle& style = {});
// As traces_json(), with "ranks": [{"file", "rank", "busy_s", "kernels_s", "communication_s"}] and
// "gains": [{"what", "remedy", "gained_s"}].
std::string explanation_json(const TraceExplanation& all);

// Of a pipeline that recorded its actions: seconds of a rank's forwards and backwards, measured and
// predicted, and what it did not compute in.
struct ActionTimes {
  int rank = 0;
  costmodel::Seconds forward, backward, idle;
  costmodel::Seconds predicted_forward, predicted_backward;  // 0: ranks with several stages
};
std::vector<ActionTimes> action_times(const Trace& trace, const costmodel::Scenario& scenario,
                                      const costmodel::ParallelPlan& plan);
std::string actions_report(const Trace& trace, const std::vector<ActionTimes>& ranks,
                           const ReportStyle& style = {});
// {"file", "iteration_s", "ranks": [{"rank", "forward_s", "backward_s", "idle_s",
// "predicted_forward_s", "predicted_backward_s"}]}
std::string actions_json(const Trace& trace, const std::vector<ActionTimes>& ranks);

}  // namespace planner
