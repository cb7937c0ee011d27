#include "planner/commands/serving_tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "costmodel/serving/serving_reader.hpp"
#include "planner/commands/compare_command.hpp"
#include "planner/commands/scenario_words.hpp"
#include "planner/commands/serving_commands.hpp"
#include "planner/page/json_page.hpp"
#include "planner/report/json_report.hpp"
#include "planner/report/serving_comparison.hpp"
#include "planner/report/serving_report.hpp"

namespace planner {

using costmodel::ConfigError;
using costmodel::ServingScenario;
using costmodel::Value;

namespace {

constexpr const char* none_keeps = "no plan fits and keeps what is asked";

struct ServedPoint {
  std::vector<std::string> cells;
  std::string plan, error;
  bool open = false;  // its plan was searched
};

ServedPoint point_of(const ServingScenario& written) {
  ServedPoint point;
  const auto s = settled_serving(written);
  point.open = !written.plan.tp && !written.plan.pp && !written.plan.ep;
  point.cells.resize(served_titles().size());
  if (!s) {
    point.error = none_keeps;
    return point;
  }
  const costmodel::ServingEstimate e = planned_estimate(*s);
  point.cells = served_cells(e);
  point.plan = fmt::format("{} · {}", plan_text(*s, e.sizes), to_string(e.weights));
  return point;
}

Table table_of(const std::vector<Axis>& axes, const std::vector<std::vector<std::string>>& values,
               const std::vector<ServedPoint>& points) {
  Table table;
  for (const Axis& axis : axes) {
    table.columns.push_back(
        {axis.path.starts_with("plan.") ? axis.path.substr(5) : axis.path, true, 0});
  }
  for (const auto& title : served_titles()) table.columns.push_back({title});
  table.columns.push_back({"plan", false});
  table.columns.push_back({"error", false, 0});
  for (std::size_t i = 0; i < points.size(); ++i) {
    std::vector<std::string> row = values[i];
    row.insert(row.end(), points[i].cells.begin(), points[i].cells.end());
    row.push_back(points[i].plan);
    row.push_back(points[i].error);
    table.rows.push_back(std::move(row));
  }
  return table;
}

ServedColumn served_column(const Session& session, const Asked& asked) {
  const std::string file = scenario_operand(asked.operand, session.options, session.path);
  Value root = tree_of(session, asked);
  const ServingScenario written =
      read_serving(root, std::filesystem::path(file).stem().string(), session.path);
  const auto s = settled_serving(written);
  if (!s) {
    throw ConfigError({file, 0, 0}, fmt::format("{}: {}", asked.name, none_keeps),
                      "shardplan plan says what stands in the way");
  }
  costmodel::ServingEstimate e = planned_estimate(*s);
  if (!s->plan.disaggregation) {
    Value plan;
    for (const auto& [key, size] : {std::pair{"tp", e.sizes.tp}, std::pair{"pp", e.sizes.pp},
                                    std::pair{"ep", e.sizes.ep}, std::pair{"dp", e.sizes.dp}})
      plan.set(key, costmodel::scalar_value(std::to_string(size)));
    root.set("plan", plan);
  }
  return {asked.name, std::move(root), *s, std::move(e)};
}

}  // namespace

Swept sweep_serving(const Session& session, const std::function<bool()>& stopped) {
  const Options& options = session.options;
  refuse_training_flags(options);
  if (options.weak) {
    throw ConfigError({}, "shardplan: --weak goes with training, not with serving",
                      "sweep serving.concurrency beside cluster.devices");
  }
  const std::vector<Axis> axes = axes_of(options);
  std::size_t count = 1;
  for (const Axis& axis : axes) count *= axis.values.size();
  const std::string file = file_of(session);
  const std::string name = std::filesystem::path(file).stem().string();
  const Value root = costmodel::serving_tree(file, session.path, options.assignments);
  std::vector<std::vector<std::string>> values;
  std::vector<ServedPoint> points;
  std::size_t unreadable = 0;
  for (std::size_t i = 0; i < count && !(stopped && stopped()); ++i) {
    Value value = root;
    values.push_back(place(axes, i, value));
    bool readable = false;
    try {
      const ServingScenario s = read_serving(value, name, session.path);
      readable = true;
      points.push_back(point_of(s));
    } catch (const ConfigError& fault) {
      // If no point can be read, the axis or the scenario is wrong.
      if (!readable && ++unreadable == count) throw;
      points.push_back({std::vector<std::string>(served_titles().size()), "", fault.what()});
    }
  }
  Swept swept{table_of(axes, values, points), {}, unreadable};
  if (std::ranges::any_of(points, &ServedPoint::open)) {
    swept.notes.emplace_back(
        "the plan was searched at every point: the column `plan` has what was chosen");
  }
  return swept;
}

CommandResult compare_serving(const Session& session) {
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
