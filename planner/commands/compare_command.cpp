#include "planner/commands/compare_command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "costmodel/base/error.hpp"
#include "costmodel/base/path.hpp"
#include "costmodel/config/override.hpp"
#include "costmodel/estimate/plan_estimate.hpp"
#include "costmodel/plan/plan_keys.hpp"
#include "costmodel/serving/serving_reader.hpp"
#include "planner/commands/scenario_words.hpp"
#include "planner/page/json_page.hpp"
#include "planner/report/comparison.hpp"
#include "planner/report/json_report.hpp"
#include "planner/report/serving_comparison.hpp"
#include "planner/search/settled_plan.hpp"

namespace planner {

using namespace costmodel;

std::vector<std::string> assignments_of(const std::string& with) {
  std::vector<std::string> assignments;
  for (std::size_t from = 0; from <= with.size();) {
    const std::size_t end = std::min(with.find(';', from), with.size());
    const std::size_t first = std::min(with.find_first_not_of(' ', from), end);
    if (first == end) {
      throw ConfigError(mark_of_argument("--with", with), "has an empty assignment",
                        "example: --with 'plan.tp=4; plan.pp=2'");
    }
    assignments.push_back(with.substr(first, end - first));
    from = end + 1;
  }
  return assignments;
}

std::vector<Asked> columns_of(const Options& options) {
  std::vector<Asked> columns;
  for (const auto& operand : options.operands) {
    const auto slash = operand.rfind('/') == std::string::npos ? 0 : operand.rfind('/') + 1;
    std::string stem = operand.substr(slash);
    if (stem.ends_with(".yaml")) stem.resize(stem.size() - 5);
    columns.push_back({stem, operand, {}});
  }
  for (const auto& with : options.with)
    columns.push_back({with, options.operands.front(), assignments_of(with)});
  refuse_if(columns.size() < 2, "'compare' has one scenario only",
            "name another, or add --with plan.tp=4, a variant of the first");
  for (std::size_t i = 1; i < columns.size(); ++i) {
    const auto same = std::count_if(columns.begin(), columns.begin() + static_cast<long>(i),
                                    [&](const Asked& c) { return c.name == columns[i].name; });
    if (same > 0) columns[i].name += fmt::format(" ({})", i + 1);
  }
  return columns;
}

Value tree_of(const Session& session, const Asked& column) {
  Value root =
      loaded(session.path, scenario_operand(column.operand, session.options, session.path));
  for (const auto& assignment : session.options.assignments)
    assign_path(root, assignment, mark_of_argument("--set", assignment));
  for (const auto& assignment : column.with)
    assign_path(root, assignment, mark_of_argument("--with", assignment));
  return root;
}

namespace {

Compared compared(const Session& session, const Asked& column, std::vector<std::string>& notes) {
  const std::string file = scenario_operand(column.operand, session.options, session.path);
  Value root = tree_of(session, column);
  Scenario s = read_scenario(root, file, session.path);
  const auto settled = settled_plan(s, threads_of(session.options));
  if (!settled) {
    throw ConfigError({file, 0, 0}, fmt::format("{}: {}", column.name, no_valid_choice),
                      "shardplan plan says what stands in the way");
  }
  auto estimate = estimate_of(s.model, s.cluster, s.training, settled->plan);
  for (const auto& note : settled->notes) notes.push_back(column.name + ": " + note);
  root.set("plan", plan_map(estimate.plan, s));
  root.erase("assumed");
  return {column.name, std::move(root), std::move(s), std::move(estimate)};
}

ServedColumn served_column(const Session& session, const Asked& asked) {
  const std::string file = scenario_operand(asked.operand, session.options, session.path);
  Value root = tree_of(session, asked);
  const ServingScenario written = read_serving(root, stem_of(file), session.path);
  const auto s = settled_serving(written);
  if (!s) {
    throw ConfigError({file, 0, 0}, fmt::format("{}: {}", asked.name, no_serving_plan),
                      "shardplan plan says what stands in the way");
  }
  ServingEstimate e = planned_estimate(*s);
  set_served(root, *s);
  return {asked.name, std::move(root), *s, e};
}

// Seconds of an iteration and seconds of a token have no row in common.
void require_one_workload(const Session& session, WorkloadKind workload) {
  const bool serving = workload == WorkloadKind::inference;
  for (const Asked& column : columns_of(session.options)) {
    refuse_if(workload_kind(tree_of(session, column)) != workload,
              fmt::format("compare has {}, which is {}, beside {} of {}",
                          session.options.operands.front(), serving ? "served" : "trained",
                          column.name, serving ? "training" : "serving"),
              "compare scenarios of one workload: all with `workload: inference`, or none");
  }
}

}  // namespace

CommandResult compare_command(const Session& session) {
  require_one_workload(session, WorkloadKind::training);
  for (const auto& operand : session.options.operands)  // an input is no output
    loaded(session.path, scenario_operand(operand, session.options, session.path));
  require_outputs(session.options);
  std::vector<Compared> columns;
  std::vector<std::string> notes;
  for (const Asked& column : columns_of(session.options))
    columns.push_back(compared(session, column, notes));
  CommandResult result;
  result.warnings = note_lines(notes);
  for (const Compared& column : columns) {
    for (const auto& warning : memory_warnings(column.estimate))
      result.warnings.push_back(column.name + ": " + warning);
  }
  if (wants_page(session.options)) {
    result.page = page_html(comparison_json(columns),
                            fmt::format("{} scenarios side by side", columns.size()), notes);
  }
  switch (session.options.format) {
    case Format::json: result.text = comparison_json(columns); break;
    case Format::csv: result.text = to_csv(comparison_rows(columns)); break;
    default: result.text = comparison_report(columns, session.style);
  }
  return result;
}

CommandResult compare_serving(const Session& session) {
  require_one_workload(session, WorkloadKind::inference);
  refuse_training_flags(session.options);
  require_outputs(session.options);
  std::vector<ServedColumn> columns;
  for (const Asked& asked : columns_of(session.options))
    columns.push_back(served_column(session, asked));
  CommandResult result;
  const Table rows = serving_comparison_rows(columns);
  if (wants_page(session.options)) {
    result.page = page_html(
        rows_json(rows), fmt::format("{} scenarios of serving side by side", columns.size()), {});
  }
  switch (session.options.format) {
    case Format::json: result.text = rows_json(rows); break;
    case Format::csv: result.text = to_csv(rows); break;
    default: result.text = serving_comparison(columns, session.style);
  }
  return result;
}

}  // namespace planner
