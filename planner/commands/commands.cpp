#include "planner/commands/commands.hpp"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <thread>

#include "costmodel/base/output_file.hpp"
#include "costmodel/base/unit_text.hpp"
#include "costmodel/config/override.hpp"
#include "costmodel/config/search_path.hpp"
#include "costmodel/config/yaml.hpp"
#include "costmodel/model/hf_config.hpp"
#include "costmodel/scenario/scenario.hpp"
#include "costmodel/schedule/simulator.hpp"
#include "planner/commands/listing.hpp"
#include "planner/commands/plan_warnings.hpp"
#include "planner/commands/progress.hpp"
#include "planner/commands/sweep.hpp"
#include "planner/commands/validate_command.hpp"
#include "planner/diagnosis/remedies.hpp"
#include "planner/exchange/export_megatron.hpp"
#include "planner/exchange/nccl_tests.hpp"
#include "planner/report/explain.hpp"
#include "planner/report/json_report.hpp"
#include "planner/report/mesh_report.hpp"
#include "planner/report/placement.hpp"
#include "planner/report/report_tables.hpp"
#include "planner/search/grid_search.hpp"
#include "planner/search/replica_plan.hpp"
#include "planner/search/strategy.hpp"

namespace planner {

using costmodel::config_path;
using costmodel::ConfigError;
using costmodel::Evaluator;
using costmodel::ParallelPlan;
using costmodel::Scenario;
using costmodel::write_file;

namespace {

constexpr int no_answer = 3;

std::string file_of(const Session& session) {
  return costmodel::scenario_file(session.options.operands.front(), session.path);
}

Scenario load(const Session& session) {
  return load_scenario(file_of(session), session.path, session.options.assignments);
}

Evaluator evaluator_of(const Scenario& s) { return Evaluator(s.model, s.cluster, s.training); }

// The scenario with its plan written out, readable again.
std::string scenario_yaml(const Session& session, const ParallelPlan& plan) {
  costmodel::Value root = costmodel::load_yaml(file_of(session));
  for (const auto& assignment : session.options.assignments)
    assign_path(root, assignment, {"--set " + assignment, 0, 0});
  root.set("plan", to_value(plan));
  return to_yaml(root);
}

// Text that is read, not run or taken in by a program.
bool is_for_people(const Options& options) {
  const bool prose = options.format == Format::text || options.format == Format::md;
  return prose && options.command != "export";
}

// Why there is no plan: never in the place of one.
CommandResult told(const Session& session, std::string report) {
  if (is_for_people(session.options)) return {no_answer, std::move(report), {}};
  return {no_answer, {}, {}, std::move(report)};
}

// The grid has no plan, and whether layouts have one is not known: no diagnosis says that.
CommandResult out_of_time(const Session& session, const Scenario& s, const SearchResult& found,
                          double seconds) {
  if (session.options.format == Format::json)
    return {no_answer, unfinished_json(found, s, seconds), {}};
  return told(session, unfinished_report(s, session.style));
}

CommandResult no_plan(const Session& session, const Scenario& s, const SearchResult& found,
                      double seconds) {
  const Diagnosis diagnosis = diagnose(s, found);
  if (session.options.format == Format::json) {
    return {
        no_answer, failure_json(found, diagnosis.obstacles, diagnosis.remedies, s, seconds), {}};
  }
  return told(session, failure_report(found, diagnosis, s, session.style));
}

// --placement FILE.
void write_placement(const Session& session, const Scenario& s, const ParallelPlan& plan) {
  const std::string& file = session.options.placement;
  if (!file.empty()) write_file(file, placement_text(placement(plan, s.cluster), file));
}

// Stages of their own sizes, on devices of one kind or several.
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

// Which search a scenario without --strategy gets, its cluster and its plan say.
void refuse_limits_of_grid(const Options& options) {
  const char* flag = options.time_limit > 0 ? "--time-limit" : "--threads";
  if (options.strategy != "grid" || (options.time_limit == 0 && options.threads == 0)) return;
  throw ConfigError({}, fmt::format("shardplan: {} does not go with --strategy grid", flag),
                    "add --strategy alpa");
}

CommandResult plan(const Session& session) {
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

CommandResult without_plan(const Session& session, const Scenario& s) {
  Evaluator evaluator = evaluator_of(s);
  return no_plan(session, s, search(s, evaluator), 0);
}

CommandResult evaluate(const Session& session) {
  Scenario s = load(session);
  const auto plan = settled_plan(s);
  if (!plan) return without_plan(session, s);
  Evaluator evaluator = evaluator_of(s);
  const auto estimate = evaluator.estimate(*plan);
  write_placement(session, s, *plan);
  CommandResult result;
  result.warnings = memory_warnings(estimate);
  if (session.options.format == Format::json) {
    result.text = estimate_json(estimate, s);
  } else if (session.options.format == Format::yaml) {
    result.text = scenario_yaml(session, *plan);
  } else {
    result.text = heading(s, session.style) + plan_report(estimate, s, session.style);
  }
  return result;
}

CommandResult explain(const Session& session) {
  Scenario s = load(session);
  const auto plan = settled_plan(s);
  if (!plan) return without_plan(session, s);
  Evaluator evaluator = evaluator_of(s);
  if (session.options.format == Format::json)
    return {0, rows_json(explanation_table(*plan, s, evaluator)), {}};
  return {0, explanation(*plan, s, evaluator, session.style), {}};
}

std::string printed(const Table& table, Format format) {
  if (format == Format::json) return rows_json(table);
  if (format == Format::csv) return to_csv(table);
  return format == Format::md ? to_markdown(table) : to_text(table, 0);
}

CommandResult simulate(const Session& session) {
  Scenario s = load(session);
  const auto plan = settled_plan(s);
  if (!plan) return without_plan(session, s);
  Evaluator evaluator = evaluator_of(s);
  const auto timeline = evaluator.timeline(*plan);
  CommandResult result;
  result.warnings = plan_warnings(session.options, s, evaluator.estimate(*plan));
  if (!session.options.trace.empty()) {
    write_file(session.options.trace, to_chrome_trace(timeline));
    result.warnings.push_back("trace written to " + session.options.trace +
                              " (open it in ui.perfetto.dev)");
  }
  if (session.options.format == Format::json) {
    result.text = to_chrome_trace(timeline);
    return result;
  }
  result.text = heading(s, session.style) + "\n" + to_string(*plan) + "\n\n";
  result.text += fmt::format(
      "{} from start to end; f forward, B {}, d data parallel, o optimizer, . idle\n",
      format_seconds(timeline.end()),
      splits_backward(plan->schedule) ? "input gradient, w weight gradient" : "backward");
  result.text += to_chart(timeline, 100);
  return result;
}

CommandResult import(const Session& session) {
  const auto& operands = session.options.operands;
  if (operands[0] == "nccl-tests") {
    const bool json = session.options.format == Format::json;
    return {0, to_microbenchmarks(read_nccl_tests(operands[1]), operands[1], json), {}};
  }
  if (operands[0] != "hf") {
    throw ConfigError({}, fmt::format("shardplan: cannot import '{}'", operands[0]),
                      "allowed: hf FILE, nccl-tests FILE");
  }
  const costmodel::Value config = costmodel::load_yaml(operands[1]);
  if (!costmodel::is_hf_config(config)) {
    throw ConfigError({operands[1], 0, 0}, "is not a Hugging Face config.json",
                      "it names no model_type");
  }
  const auto model = costmodel::read_model(costmodel::from_hf_config(config),
                                           std::filesystem::path(operands[1]).stem().string());
  const costmodel::Value map = to_value(model);
  if (session.options.format != Format::json) return {0, to_yaml(map), {}};
  Table row;
  row.rows.emplace_back();
  for (const auto& entry : map.entries) {
    row.columns.push_back({entry.key});
    row.rows.front().push_back(entry.value.text);
  }
  return {0, rows_json(row), {}};
}

CommandResult export_plan(const Session& session) {
  if (session.options.to != "megatron") {
    const std::string given = session.options.to.empty()
                                  ? "export lacks --to"
                                  : fmt::format("cannot export to '{}'", session.options.to);
    throw ConfigError({}, "shardplan: " + given, "allowed: --to megatron");
  }
  Scenario s = load(session);
  const auto plan = settled_plan(s);
  if (!plan) return without_plan(session, s);
  const MegatronExport exported = export_megatron(s, *plan);
  Evaluator evaluator = evaluator_of(s);
  CommandResult result;
  result.warnings = plan_warnings(session.options, s, evaluator.estimate(*plan));
  for (const auto& note : exported.notes) result.warnings.push_back("note: " + note);
  if (session.options.format == Format::json) {
    Table table{{{"argument", false}}, {}};
    for (const auto& argument : exported.arguments) table.rows.push_back({argument});
    result.text = rows_json(table);
  } else {
    result.text = launch_script(exported, s, *plan);
  }
  return result;
}

}  // namespace

CommandResult run_command(const Options& options, const Style& style) {
  const Markup markup = options.format == Format::md ? Markup::markdown : Markup::text;
  const Session session{options, {markup, style}, config_path(options.config_path)};
  if (options.command == "plan") return plan(session);
  if (options.command == "evaluate") return evaluate(session);
  if (options.command == "explain") return explain(session);
  if (options.command == "sweep") {
    const Table points = sweep(file_of(session), session.path, options);
    return {any_answer(points) ? 0 : no_answer, printed(points, options.format), {}};
  }
  if (options.command == "simulate") return simulate(session);
  if (options.command == "validate") return validate_runs(session);
  if (options.command == "import") return import(session);
  if (options.command == "calibrate" || options.command == "run") {
    throw ConfigError({}, fmt::format("shardplan: flags stand before '{}'", options.command),
                      fmt::format("write shardplan {} first, then its flags", options.command));
  }
  if (options.command == "export") return export_plan(session);
  return {0, printed(listing(options.operands.front(), session.path), options.format), {}};
}

}  // namespace planner
