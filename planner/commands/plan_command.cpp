#include "planner/commands/plan_command.hpp"

#include <fmt/format.h>

#include <unistd.h>
#include <functional>
#include <thread>

#include "planner/commands/progress.hpp"
#include "planner/report/json_mesh.hpp"
#include "planner/report/json_report.hpp"
#include "planner/report/mesh_report.hpp"
#include "planner/report/report_tables.hpp"
#include "planner/search/replica_plan.hpp"
#include "planner/search/strategy.hpp"

namespace planner {

using costmodel::ConfigError;
using costmodel::Evaluator;
using costmodel::Scenario;

namespace {

// The grid has no plan, and it is unknown whether layouts have one, so no diagnosis applies.
CommandResult out_of_time(const Session& session, const Scenario& s, const SearchResult& found,
                          double seconds) {
  if (session.options.format == Format::json)
    return {no_answer, unfinished_json(found, s, seconds), {}};
  return unanswered(session, unfinished_report(s, session.style));
}

// The search over heterogeneous stages, on one or several kinds of devices.
CommandResult plan_meshes(const Session& session, const Scenario& s, const Stopwatch& watch,
                          int threads, const std::function<bool()>& expired) {
  MeshSearch found = search_meshes(s, threads, expired);
  rank_replicas(found, s);
  const bool any = !found.plans.empty();
  if (any) write_placement(session, s, found.plans.front().plan);
  CommandResult result{any ? 0 : no_answer, {}, {}};
  const std::string& strategy = session.options.strategy;
  std::string remark;
  if (session.options.strategy_given && strategy != "meshes") {
    remark = fmt::format(
        "--strategy {} searches stages that are alike on devices of one kind: this is --strategy "
        "meshes instead.",
        strategy);
  }
  const Format format = session.options.format;
  if (format == Format::json) {
    result.text = mesh_json(found, s, watch.seconds());
  } else if (!any && !is_for_people(session.options)) {
    result.failure = mesh_report(found, s, watch.seconds(), session.style, remark);
  } else if (format == Format::yaml) {
    result.text = scenario_yaml(session, found.plans.front().plan);
  } else if (format == Format::csv) {
    result.text = to_csv(mesh_rows(found));
  } else {
    result.text = mesh_report(found, s, watch.seconds(), session.style, remark);
  }
  return result;
}

// The cluster and the plan determine the search when --strategy is not given.
void refuse_limits_of_grid(const Options& options) {
  const char* flag = options.time_limit > 0 ? "--time-limit" : "--threads";
  if (options.strategy != "grid" || (options.time_limit == 0 && options.threads == 0)) return;
  throw ConfigError({}, fmt::format("shardplan: {} does not go with --strategy grid", flag),
                    "add --strategy alpa");
}

}  // namespace

CommandResult plan_command(const Session& session) {
  Scenario s = load(session);
  if (session.options.top > 0) s.search.top = session.options.top;
  require_offered(s);
  const Stopwatch watch;
  const bool told = !session.options.quiet && isatty(STDERR_FILENO) != 0;
  Progress progress(watch, session.options.time_limit, told);
  const std::function<bool()> expired = progress.expired();
  const int threads = session.options.threads > 0
                          ? session.options.threads
                          : static_cast<int>(std::thread::hardware_concurrency());
  if (session.options.strategy == "meshes" || !s.cluster.groups.empty() || !s.plan.stages.empty() ||
      !s.plan.replicas.empty())
    return plan_meshes(session, s, watch, threads, expired);
  refuse_limits_of_grid(session.options);
  const Strategies all = run_strategies(s, session.options.strategy != "grid", threads, expired);
  const SearchResult& found = all.found;
  if (found.plans.empty()) {
    const bool cut_short = all.layouts && all.layouts->expired;
    return (cut_short ? out_of_time : no_plan)(session, s, found, watch.seconds());
  }
  write_placement(session, s, found.plans.front().plan);
  Evaluator evaluator = evaluator_of(s);
  const auto steps = one_step_away(found.plans.front(), s, evaluator);
  switch (session.options.format) {
    case Format::json: return {0, search_json(all, steps, s, watch.seconds()), {}};
    case Format::yaml: return {0, scenario_yaml(session, found.plans.front().plan), {}};
    case Format::csv: return {0, to_csv(ranking_rows(found.plans)), {}};
    case Format::text:
    case Format::html:
    case Format::svg:
    case Format::md: return {0, search_report(all, steps, s, watch.seconds(), session.style), {}};
  }
  return {};
}

}  // namespace planner
