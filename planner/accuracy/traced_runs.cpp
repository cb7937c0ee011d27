#include "planner/accuracy/traced_runs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "costmodel/base/error.hpp"
#include "costmodel/base/path.hpp"
#include "costmodel/estimate/plan_estimate.hpp"
#include "planner/accuracy/trace_fit.hpp"
#include "planner/search/settled_plan.hpp"
#include "planner/traces/trace_file.hpp"

namespace planner {

using namespace costmodel;

namespace {

struct PreparedRun {
  const EvidenceRun* run;
  Scenario scenario;
  costmodel::ParallelPlan plan;
  double error(const Scenario& with) const {
    const auto e = estimate_of(with.model, with.cluster, with.training, plan);
    return 100 * (e.iteration.value / *run->measured.iteration - 1);
  }
};

std::vector<PreparedRun> prepared(const std::vector<EvidenceRun>& runs,
                                  const costmodel::ConfigPath& path) {
  std::vector<PreparedRun> all;
  for (const EvidenceRun& run : runs) {
    if (!run.measured.iteration) continue;
    Scenario scenario = scenario_of(run, path);
    take_defaults(scenario);
    const auto settled = settled_run(scenario);
    if (settled) all.push_back({&run, std::move(scenario), settled->plan});
  }
  return all;
}

const PreparedRun& run_of(const std::vector<PreparedRun>& runs, const std::string& file) {
  std::string name = costmodel::stem_of(file);
  name = name.substr(0, name.find(".trace"));
  const auto is_of = [&](const PreparedRun& each) {
    const std::string& id = each.run->id;
    return id == name || id.ends_with("-" + name);
  };
  const auto at = std::ranges::find_if(runs, is_of);
  const auto found = std::ranges::count_if(runs, is_of);
  if (found != 1) {
    throw ConfigError({file, 0, 0},
                      found == 0 ? std::string("is of no run of this evidence")
                                 : fmt::format("may be of {} runs of this evidence", found),
                      "name the file as the run's id ends: ID.trace.json.gz");
  }
  return *at;
}

bool in_group(const Scenario& a, const Scenario& b) {
  return a.training.stack.name == b.training.stack.name &&
         (a.model.experts > 0) == (b.model.experts > 0);
}

TracedGroup group_of(const std::vector<PreparedRun>& runs, const std::string& file) {
  const PreparedRun& of = run_of(runs, file);
  const Trace trace = read_trace(file);
  const TraceTimes times = times_of(trace, attributor_of(of.scenario, of.plan));
  ReadTrace read{
      file,         {},   trace.profiler, trace.device, !trace.operators.empty(), trace.has_sizes,
      trace.marked, times};
  const FittedTrace fitted = fit_trace(of.scenario, of.plan, std::move(read));
  refuse_other_job(fitted, of.scenario);
  const std::string& stack = of.scenario.training.stack.name;
  const auto own = traced_constants({fitted}, stack, of.scenario.training.stack.host.kernel_launch);
  TracedGroup group;
  group.run = of.run->id;
  group.trace = file;
  group.attributed = times.attributed() / times.kernels;
  for (const PreparedRun& each : runs) {
    if (!in_group(each.scenario, of.scenario)) continue;
    const double before = each.error(each.scenario),
                 after = each.error(with_constants(each.scenario, own));
    if (&each == &of) {
      group.before = before;
      group.after = after;
      continue;
    }
    ++group.others;
    group.others_before += std::abs(before);
    group.others_after += std::abs(after);
    if (std::abs(after) <= std::abs(group.worst_error)) continue;
    group.worst_error = after;
    group.worst = each.run->id;
  }
  if (group.others > 0) {
    group.others_before /= group.others;
    group.others_after /= group.others;
  }
  return group;
}

}  // namespace

std::vector<TracedGroup> traced_groups(const std::vector<EvidenceRun>& runs,
                                       const std::vector<std::string>& traces,
                                       const costmodel::ConfigPath& path) {
  const auto all = prepared(runs, path);
  std::vector<TracedGroup> groups;
  groups.reserve(traces.size());
  for (const std::string& file : traces) groups.push_back(group_of(all, file));
  return groups;
}

Table traced_group_table(const std::vector<TracedGroup>& groups) {
  Table table{{left("traced run"), "attributed %", "its error %, before", "its error %, after",
               "others", "their error %, before", "their error %, after", "worst %", left("in")}};
  for (const TracedGroup& group : groups) {
    table.rows.push_back({group.run, one_decimal(100 * group.attributed),
                          fmt::format("{:+.1f}", group.before), fmt::format("{:+.1f}", group.after),
                          fmt::format("{}", group.others), one_decimal(group.others_before),
                          one_decimal(group.others_after),
                          fmt::format("{:+.1f}", group.worst_error), group.worst});
  }
  return table;
}

}  // namespace planner
