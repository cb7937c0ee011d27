#include "planner/commands/explain_trace_command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "costmodel/base/escape.hpp"
#include "costmodel/base/unit_text.hpp"
#include "costmodel/estimate/evaluator.hpp"
#include "planner/accuracy/trace_explanation.hpp"
#include "planner/accuracy/trace_page.hpp"
#include "planner/commands/from_trace_command.hpp"
#include "planner/traces/trace_file.hpp"

namespace planner {

using namespace costmodel;

bool names_traces(const Options& options) {
  const std::vector<std::string> files(options.operands.begin() + 1, options.operands.end());
  const auto traces = std::ranges::count_if(files, is_trace_file);
  if (files.size() > 1 && static_cast<std::size_t>(traces) < files.size()) {
    const auto other = std::ranges::find_if_not(files, is_trace_file);
    throw ConfigError({*other, 0, 0}, "is no trace, and more than one file is given",
                      "give one log, or the traces of one job's ranks");
  }
  return traces > 0;
}

CommandResult explain_traces(const Session& session, const Scenario& scenario,
                             const ParallelPlan& plan) {
  const Options& options = session.options;
  const std::vector<std::string> files(options.operands.begin() + 1, options.operands.end());
  const bool json = options.format == Format::json;
  CommandResult result;
  const auto warn = [&](std::string warning) {
    if (!warning.empty()) result.warnings.push_back(std::move(warning));
  };
  Trace trace = read_trace(files.front());
  if (trace.kernels.empty()) {
    if (wants_page(options)) {
      throw ConfigError({files.front(), 0, 0}, "has actions and no kernels: there is no page of it",
                        "choose --format text, json or md");
    }
    const auto actions = action_times(trace, scenario, plan);
    warn(other_ranks(files.front(), trace.ranks, {plan.pp, "stages", "plan.pp"}));
    result.text =
        json ? actions_json(trace, actions) : actions_report(trace, actions, session.style);
    return result;
  }
  warn(other_ranks(files.front(), trace.ranks,
                   {scenario.cluster.devices, "devices", "cluster.devices"}));
  TraceExplanation all;
  const Attributor attributor = attributor_of(scenario, plan);
  TraceRows rows;
  ReadTrace read;
  std::map<int, std::string> by_rank;
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (i > 0) trace = read_trace(files[i]);
    const auto [known, added] = by_rank.emplace(trace.rank, files[i]);
    const bool recorded = trace.ranks > 0;
    if (!added && (recorded || known->second == files[i])) {
      throw ConfigError({files[i], 0, 0},
                        fmt::format("is of rank {}, as {}", trace.rank, quote(known->second)),
                        "give each rank's file once");
    }
    all.ranks.push_back({files[i], trace.rank, times_of(trace, attributor)});
    add_rank(read, files[i], trace, all.ranks.back().times);
    if (wants_page(options)) {
      rows.add_measured(trace, attributor,
                        files.size() > 1 ? fmt::format("rank {}", trace.rank) : "measured");
    }
  }
  // What a calibration has learnt before is not learnt from this trace: its constants are those of
  // the trace alone, and what was predicted is by the calibration.
  const Scenario free = with_constants(scenario, {});
  all.trace = fit_trace(free, plan, std::move(read));
  refuse_other_job(all.trace, scenario);
  const auto& stack = free.training.stack;
  const OwnRuns own = traced_constants({all.trace}, stack.name, stack.host.kernel_launch);
  all.trace.before = predicted_times(scenario, plan, all.trace.read.rank);
  all.trace.after = predicted_times(with_constants(free, own), plan, all.trace.read.rank);
  all.gains = gains_of(all, scenario.training.stack.host.iteration);
  result.text = json ? explanation_json(all) : explanation_report(all, session.style);
  if (wants_page(options)) {
    rows.add_predicted(scenario, plan);
    result.page = trace_page(all, rows, scenario, explanation_json(all));
  }
  return result;
}

}  // namespace planner
