#include "planner/commands/plan_command.hpp"

#include <fmt/format.h>

#include <unistd.h>
#include <functional>
#include <optional>
#include <utility>

#include "costmodel/cli/terminal.hpp"
#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/serving/engine.hpp"
#include "planner/commands/export_command.hpp"
#include "planner/commands/interruption.hpp"
#include "planner/commands/plan_extras.hpp"
#include "planner/commands/progress.hpp"
#include "planner/page/serving_page.hpp"
#include "planner/report/json_report.hpp"
#include "planner/report/json_serving.hpp"
#include "planner/report/machines_report.hpp"
#include "planner/report/report_tables.hpp"
#include "planner/report/serving_report.hpp"
#include "planner/report/strategy_text.hpp"
#include "planner/search/measured_plan.hpp"
#include "planner/search/serving_search.hpp"
#include "planner/search/unasked_keys.hpp"

namespace planner {

using namespace costmodel;

namespace {

// Seconds since the start, where the report tells them.
std::optional<double> wall_time(const Session& session, const Stopwatch& watch) {
  if (session.options.reproducible) return std::nullopt;
  return watch.seconds();
}

// A search was stopped before it had a plan, so it is unknown whether there is one, and no
// diagnosis applies.
CommandResult stopped(const Session& session, const Scenario& s, const Strategies& all,
                      std::optional<double> seconds) {
  const auto json = [&] { return unfinished_json(all, s, seconds); };
  CommandResult result = session.options.format == Format::json
                             ? CommandResult{no_answer, json(), {}}
                             : unanswered(session, unfinished_report(all, s, session.style));
  result.page = page_of(session, s, json);
  return result;
}

// `cause`: the signal that ended the search; "" when none did.
void note_interruption(const std::string& cause, MeshSearch& found) {
  found.interrupted = cause;
  if (!cause.empty() && found.plans.empty()) found.reason = planner::interruption(found);
}

// The report of heterogeneous stages, on one or several kinds of devices.
CommandResult plan_meshes(const Session& session, const Scenario& s, const Stopwatch& watch,
                          MeshSearch found, const Interruption& interruption) {
  note_interruption(interruption.text(), found);
  if (!found.plans.empty()) write_placement(session, s, found.plans.front().plan);
  const std::string& strategy = session.options.strategy;
  std::string remark;
  if (!strategy.empty() && strategy != "meshes") {
    remark = fmt::format(
        "--strategy {} searches stages that are alike on devices of one kind: this is --strategy "
        "meshes instead.",
        strategy);
  }
  CommandResult result = mesh_result(session, s, found, wall_time(session, watch), remark);
  if (!found.interrupted.empty())
    interruption.tell("plan: " + planner::interruption(found), result);
  return result;
}

// Makes more of the report's JSON; empty: nothing more.
using MoreJson = std::function<std::string(const std::string&)>;

// The report in the requested format. `seconds`: of the search, without the extras'.
CommandResult answered(const Session& session, const Scenario& s, const Strategies& all,
                       const PlanExtras& extras, std::optional<double> seconds,
                       const MoreJson& more) {
  const SearchResult& found = all.found;
  write_placement(session, s, found.plans.front().plan);
  Evaluator evaluator = evaluator_of(s);
  const auto steps = one_step_away(found.plans.front(), s, evaluator);
  const ParallelPlan& best = found.plans.front().plan;
  const auto json = [&] {
    const std::string report =
        with_extras(search_json(all, steps, s, seconds, extras.front), extras, s);
    return more ? more(report) : report;
  };
  CommandResult result;
  result.page = page_of(session, s, json, &best);
  switch (session.options.format) {
    case Format::json: result.text = json(); break;
    case Format::yaml: result.text = scenario_yaml(session, s, best); break;
    case Format::csv:
      result.text =
          to_csv(ranking_rows(found.plans, s.training.peak_errors, all.fastest, extras.members));
      break;
    case Format::html: break;
    case Format::text:
    case Format::svg:
    case Format::md:
      result.text =
          search_report(all, steps, s, seconds, session.style, extras.front, extras.members) +
          extras_report(extras, s, session.style);
  }
  return result;
}

// The report of stages of equal sizes.
CommandResult plan_alike(const Session& session, const Scenario& s, const Stopwatch& watch,
                         Strategies all, const Interruption& interruption,
                         const std::function<bool()>& expired, const MoreJson& more) {
  const auto seconds = wall_time(session, watch);
  all.interrupted = interruption.text();
  if (all.meshes) note_interruption(all.interrupted, *all.meshes);
  const auto stop = [poll = interruption.poll(), &expired] { return poll() || expired(); };
  const Format format = session.options.format;
  if (format != Format::csv && format != Format::yaml) {
    add_measured(all, s, method_of(session.options), stop);
    add_unasked(all, s, threads_of(session.options), stop);
  }
  const PlanExtras extras = extras_of(session, s, all, interruption.poll());
  if (!all.interrupted.empty()) {
    all.sharding.reset();
    CommandResult result = all.found.plans.empty()
                               ? stopped(session, s, all, seconds)
                               : answered(session, s, all, extras, seconds, more);
    interruption.tell("plan: " + planner::interruption(all), result);
    return result;
  }
  if (!all.found.plans.empty()) {
    CommandResult result = answered(session, s, all, extras, seconds, more);
    if (const std::string note = export_note(s, all.found.plans.front().plan); !note.empty())
      result.warnings.push_back("note: " + note);
    if (interruption.came()) {
      interruption.tell(fmt::format("plan: {}: the search had ended; of what was asked for beside "
                                    "it a part is reported",
                                    interruption.text()),
                        result);
    }
    return result;
  }
  if (all.layouts && all.layouts->expired && !all.layouts->spent)
    return stopped(session, s, all, wall_time(session, watch));
  CommandResult result =
      no_plan(session, s, all.found, wall_time(session, watch), interruption.poll());
  if (interruption.came()) {
    interruption.tell(fmt::format("plan: {}: nothing fits, and not all that might help was tried",
                                  interruption.text()),
                      result);
  }
  return result;
}

// What --deadline and --budget must know.
void require_run(const Scenario& s, const RunLimits& limits) {
  refuse_if(s.training.run_tokens == 0, "--deadline and --budget are of a run of so many tokens",
            "add --tokens 15T");
  refuse_if(!stages_alike(s),
            "--deadline and --budget are of stages that are alike on devices of one kind",
            "leave out plan.stages and cluster.groups");
  refuse_if(limits.usd > 0 && s.cluster.operation.usd_per_device_hour == 0,
            "--budget needs to know what a device costs an hour, which the cluster does not say",
            "add --set cluster.price.usd_per_device_hour=2.50, or what you pay");
}

CommandResult plan_for(const Session& session, const MoreJson& more);

// --deadline, --budget: first how many devices, then the plan for those.
CommandResult plan_devices(const Session& session) {
  const RunLimits& limits = session.options.limits;
  const Scenario s = load(session);
  require_offered(s);
  require_run(s, limits);
  const Interruption interruption(session.options);
  const bool told = !session.options.quiet && overwrites_lines(STDERR_FILENO);
  const Stopwatch watch;
  Progress progress(watch, 0, told, interruption.poll());
  const DeviceLadder ladder =
      device_ladder(s, limits, method_of(session.options), progress.expired());
  const bool json = session.options.format == Format::json;
  if (!ladder.chosen) {
    CommandResult result =
        json ? CommandResult{no_answer, ladder_json(ladder, limits, s), {}}
             : unanswered(session, ladder_report(ladder, limits, s, session.style));
    result.page = page_of(session, s, [&] { return ladder_json(ladder, limits, s); });
    if (ladder.interrupted) interruption.tell("plan: " + interruption.text(), result);
    return result;
  }
  Options options = session.options;
  options.limits = {};
  options.assignments.push_back(
      fmt::format("cluster.devices={}", ladder.rungs[*ladder.chosen].devices));
  const auto more = [&](const std::string& report) {
    return with_ladder(report, ladder, limits, s);
  };
  CommandResult result = plan_for(Session{options, session.style, session.path}, more);
  if (!result.text.empty() && is_for_people(session.options)) {
    result.text = ladder_report(ladder, limits, s, session.style) + result.text;
  }
  return result;
}

// What adds a part to the report must know.
void require_alike(const Options& options, const Scenario& s) {
  if (stages_alike(s)) return;
  for (const auto& [asked, flag] :
       {std::pair(options.all, "--all"), std::pair(options.front, "--front"),
        std::pair(options.sensitivity, "--sensitivity"),
        std::pair(options.upgrades, "--upgrades")}) {
    refuse_if(asked, fmt::format("{} is of stages that are alike on devices of one kind", flag),
              "leave it out");
  }
}

CommandResult plan_for(const Session& session, const MoreJson& more) {
  Scenario s = load(session);
  if (session.options.top > 0) s.search.top = session.options.top;
  require_offered(s);
  const Stopwatch watch;
  const Interruption interruption(session.options);
  const bool told = !session.options.quiet && overwrites_lines(STDERR_FILENO);
  Progress progress(watch, session.options.time_limit, told, interruption.poll());
  const std::function<bool()> expired = progress.expired();
  require_alike(session.options, s);
  const std::string& strategy = session.options.strategy;
  const bool alike = stages_alike(s) && strategy != "meshes";
  const Reach reach = strategy.empty()        ? usual_reach(s)
                      : !alike                ? Reach::meshes
                      : strategy == "grid"    ? Reach::even
                      : strategy == "layouts" ? Reach::layouts
                                              : Reach::all;
  const std::uint64_t effort = session.options.time_limit > 0 ? any_effort : usual_effort;
  Strategies all =
      run_strategies(s, reach, threads_of(session.options), expired, interruption.poll(), effort);
  return alike ? plan_alike(session, s, watch, std::move(all), interruption, expired, more)
               : plan_meshes(session, s, watch, std::move(*all.meshes), interruption);
}

}  // namespace

CommandResult plan_command(const Session& session) {
  return session.options.limits.any() ? plan_devices(session) : plan_for(session, {});
}

CommandResult plan_serving(const Session& session) {
  const Options& options = session.options;
  ServingScenario s = load_serving(session);
  const int top = options.top > 0 ? options.top : usually_ranked;
  const ServingSearch found = search_serving(s, top);
  const auto fit = find_serving_fit(session.path);
  CommandResult result;
  // An engine that would not start with the model's own length is started with what is asked of it.
  if (found.length_asked) {
    const std::int64_t own = s.serving.max_model_len;
    s = with_length_asked(std::move(s));
    result.warnings.push_back(
        fmt::format("note: serving.max_model_len=auto, {}: the engine does not start with the "
                    "model's {}",
                    format_integer(s.serving.max_model_len), format_integer(own)));
  }
  if (found.best.empty()) return without_serving_plan(session, s);
  if (wants_page(session.options)) result.page = serving_search_page(s, found, fit);
  const Format format = session.options.format;
  if (format == Format::json) {
    result.text = serving_search_json(s, found, fit);
  } else if (format == Format::yaml) {
    result.text = serving_yaml(session, with_choice(s, found.best.front().choice));
  } else if (format == Format::csv) {
    result.text = to_csv(serving_ranking_rows(found.best));
  } else {
    result.text = serving_search_report(s, found, fit, session.style);
  }
  return result;
}

}  // namespace planner
