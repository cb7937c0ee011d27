#include "planner/commands/serving_commands.hpp"

#include <fmt/format.h>

#include <utility>

#include "costmodel/base/output_file.hpp"
#include "costmodel/config/yaml.hpp"
#include "costmodel/serving/serving_reader.hpp"
#include "planner/accuracy/json_serving_runs.hpp"
#include "planner/accuracy/serving_fit.hpp"
#include "planner/accuracy/serving_residuals.hpp"
#include "planner/accuracy/serving_scorecard.hpp"
#include "planner/commands/plan_warnings.hpp"
#include "planner/frameworks/engine_launch.hpp"
#include "planner/frameworks/json_engine_launch.hpp"
#include "planner/page/json_page.hpp"
#include "planner/page/serving_page.hpp"
#include "planner/report/json_report.hpp"
#include "planner/report/json_serving.hpp"
#include "planner/report/serving_explanation.hpp"
#include "planner/report/serving_report.hpp"

namespace planner {

using costmodel::ConfigError;
using costmodel::ServingEstimate;
using costmodel::ServingScenario;

// What adds a part to a report of training has nothing to say of serving.
void refuse_training_flags(const Options& options) {
  const std::pair<bool, const char*> flags[]{
      {options.front, "--front"},
      {options.sensitivity, "--sensitivity"},
      {options.upgrades, "--upgrades"},
      {options.limits.any(), "--deadline and --budget"},
      {!options.strategy.empty(), "--strategy"},
      {!options.placement.empty(), "--placement"},
  };
  for (const auto& [asked, flag] : flags) {
    if (!asked) continue;
    throw ConfigError({}, fmt::format("shardplan: {} goes with training, not with serving", flag),
                      "leave it out; plan's report of serving has a front of its own");
  }
}

namespace {
constexpr int usually_ranked = 5;
}

std::optional<ServingScenario> settled_serving(const ServingScenario& s) {
  const bool open = !s.plan.tp && !s.plan.pp && !s.plan.ep && !s.plan.disaggregation;
  if (!open && !s.serving.weights_open) return s;
  const ServingSearch found = search_serving(s, usually_ranked);
  if (found.best.empty()) return std::nullopt;
  return with_choice(s, found.best.front().choice);
}

namespace {

ServingScenario load_served(const Session& session) {
  const Options& options = session.options;
  refuse_training_flags(options);
  ServingScenario s = load_serving(file_of(session), session.path, options.assignments);
  for (const auto& file : {options.out, options.page})
    if (!file.empty()) costmodel::require_writable(file);
  return s;
}

std::string with_plan(const Session& session, const ServingScenario& chosen) {
  costmodel::Value root =
      costmodel::serving_tree(file_of(session), session.path, session.options.assignments);
  const auto number = [](std::int64_t n) { return costmodel::scalar_value(std::to_string(n)); };
  const auto sizes_value = [&](const costmodel::ServingSizes& sizes) {
    costmodel::Value map;
    map.set("tp", number(sizes.tp));
    map.set("pp", number(sizes.pp));
    map.set("ep", number(sizes.ep));
    map.set("dp", number(sizes.dp));
    return map;
  };
  costmodel::Value plan;
  if (chosen.plan.disaggregation) {
    costmodel::Value pools;
    pools.set("prefill", sizes_value(chosen.plan.disaggregation->prefill));
    pools.set("decode", sizes_value(chosen.plan.disaggregation->decode));
    plan.set("disaggregation", pools);
  } else {
    plan = sizes_value(sizes_of(chosen));
  }
  root.set("plan", plan);
  costmodel::Value& serving = *root.find("serving");
  serving.set("weights", costmodel::scalar_value(std::string(to_string(chosen.serving.weights))));
  serving.set("max_num_seqs", number(chosen.serving.limits.max_num_seqs));
  serving.set("max_num_batched_tokens", number(chosen.serving.limits.max_num_batched_tokens));
  root.erase("assumed");
  return to_yaml(root);
}

// What --top says, or five.
int ranked(const Options& options) { return options.top > 0 ? options.top : usually_ranked; }

CommandResult unserved(const Session& session, const ServingScenario& s) {
  const auto fit = find_serving_fit(session.path);
  const ServingSearch found = search_serving(s, 1);
  CommandResult result =
      session.options.format == Format::json
          ? CommandResult{no_answer, serving_search_json(s, found, fit), {}}
          : unanswered(session, serving_search_report(s, found, fit, session.style));
  if (wants_page(session.options)) result.page = serving_search_page(s, found, fit);
  return result;
}

}  // namespace

bool is_serving(const Session& session) {
  return costmodel::is_serving(
      costmodel::serving_tree(file_of(session), session.path, session.options.assignments));
}

CommandResult evaluate_serving(const Session& session) {
  const ServingScenario written = load_served(session);
  const auto s = settled_serving(written);
  if (!s) return unserved(session, written);
  const ServingEstimate e = planned_estimate(*s);
  const auto fit = find_serving_fit(session.path);
  CommandResult result{e.fits ? 0 : no_answer, {}, {}};
  if (wants_page(session.options)) result.page = serving_page(*s, e, fit);
  switch (session.options.format) {
    case Format::json: result.text = serving_json(*s, e, fit); break;
    case Format::yaml: result.text = with_plan(session, *s); break;
    default:
      result.text = serving_heading(*s, session.style) + serving_report(*s, e, fit, session.style);
  }
  return result;
}

CommandResult explain_serving(const Session& session) {
  const ServingScenario written = load_served(session);
  const auto s = settled_serving(written);
  if (!s) return unserved(session, written);
  const Table table = serving_explanation(*s, planned_estimate(*s));
  CommandResult result;
  result.text = session.options.format == Format::json ? rows_json(table)
                                                       : serving_heading(*s, session.style) + "\n" +
                                                             section_table(table, session.style);
  if (wants_page(session.options)) {
    const std::string heading = serving_heading(*s, {});
    result.page = page_html(rows_json(table), heading.substr(0, heading.find('\n')), {});
  }
  return result;
}

CommandResult plan_serving(const Session& session) {
  const ServingScenario s = load_served(session);
  const ServingSearch found = search_serving(s, ranked(session.options));
  const auto fit = find_serving_fit(session.path);
  if (found.best.empty()) return unserved(session, s);
  CommandResult result;
  if (wants_page(session.options)) result.page = serving_search_page(s, found, fit);
  const Format format = session.options.format;
  if (format == Format::json) {
    result.text = serving_search_json(s, found, fit);
  } else if (format == Format::yaml) {
    result.text = with_plan(session, with_choice(s, found.best.front().choice));
  } else if (format == Format::csv) {
    result.text = to_csv(serving_ranking_rows(found.best));
  } else {
    result.text = serving_search_report(s, found, fit, session.style);
  }
  return result;
}

CommandResult export_serving(const Session& session) {
  ServingScenario written = load_served(session);
  // One launch has no words for two pools; a plan that is written with them is refused.
  if (!written.plan.disaggregation) written.plan.together = true;
  const auto s = settled_serving(written);
  if (!s) return unserved(session, written);
  const EngineLaunch launch = engine_launch(*s, sizes_of(*s), session.options.to);
  return {0, session.options.format == Format::json ? to_json(launch) : launch.text,
          note_lines(launch.notes)};
}

CommandResult validate_serving(const Session& session) {
  const Options& options = session.options;
  auto runs = read_serving_runs(options.operands, session.path);
  const int threads = threads_of(options);
  costmodel::ServingFit fit = find_serving_fit(session.path);
  const bool fits = options.leave_one_source_out || !options.write_residuals.empty();
  if (fits) {
    if (!options.write_residuals.empty()) fit = fit_serving(runs, threads);
    leave_one_source_out(runs, threads);
    set_intervals(runs, fit);
    if (!options.write_residuals.empty())
      costmodel::write_file(options.write_residuals, to_yaml(to_value(fit)));
  } else {
    for (ServingRun& run : runs) predict(run);
  }
  CommandResult result;
  switch (options.format) {
    case Format::json: result.text = serving_runs_json(runs); break;
    case Format::csv: result.text = to_csv(serving_run_table(runs)); break;
    case Format::html:
    case Format::svg:
      throw ConfigError({}, "shardplan: validate of serving has no such --format",
                        "allowed: text, json, csv, md");
    default: result.text = serving_scorecard(runs, fit, fits, options.rows, session.style);
  }
  return result;
}

}  // namespace planner
