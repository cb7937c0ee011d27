#include "planner/commands/sweep.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "costmodel/base/error.hpp"
#include "costmodel/config/override.hpp"
#include "costmodel/config/yaml.hpp"
#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/scenario/scenario.hpp"
#include "planner/commands/interruption.hpp"
#include "planner/search/grid_search.hpp"

namespace planner {

using costmodel::ConfigError;
using costmodel::Estimate;
using costmodel::mark_of_argument;
using costmodel::Scenario;

Axis parse_axis(const std::string& over) {
  const auto equals = over.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == over.size()) {
    throw ConfigError(mark_of_argument("--over", over), "is not KEY=A,B,...",
                      "example: --over tp=1,2,4,8");
  }
  Axis axis;
  axis.path = over.substr(0, equals);
  const bool whole = axis.path == "model" || axis.path == "cluster";
  if (!whole && axis.path.find('.') == std::string::npos) axis.path = "plan." + axis.path;
  for (std::size_t from = equals + 1; from <= over.size();) {
    const std::size_t comma = std::min(over.find(',', from), over.size());
    if (comma == from) {
      throw ConfigError(mark_of_argument("--over", over), "has an empty value",
                        "example: --over tp=1,2,4,8");
    }
    axis.values.push_back(over.substr(from, comma - from));
    from = comma + 1;
  }
  return axis;
}

namespace {

std::vector<std::string> result_cells(const Scenario& scenario) {
  const auto settled = settled_plan(scenario);
  if (!settled) {
    std::vector<std::string> cells(8);
    cells.emplace_back(no_valid_choice);
    return cells;
  }
  const costmodel::ParallelPlan& plan = settled->plan;
  costmodel::Evaluator evaluator(scenario.model, scenario.cluster, scenario.training);
  const Estimate e = evaluator.estimate(plan);
  return {fmt::format("{}", e.plan.dp),
          fmt::format("{}", e.micro_batches),
          fmt::format("{:.6g}", e.iteration.value),
          fmt::format("{:.6g}", e.tokens_per_s),
          fmt::format("{:.4f}", e.mfu),
          fmt::format("{:.4f}", e.bubble_fraction),
          fmt::format("{:.2f}", e.peak.value / (1 << 30)),
          e.fits() ? "true" : "false",
          ""};
}

}  // namespace

Table sweep(const std::string& file, const costmodel::ConfigPath& path, const Options& options,
            const std::function<bool()>& stopped) {
  std::vector<Axis> axes;
  std::size_t points = 1;
  for (const auto& over : options.over) {
    axes.push_back(parse_axis(over));
    points *= axes.back().values.size();
    if (points > 1'000'000) {
      throw ConfigError({"--over", 0, 0}, "asks for more than a million points",
                        "sweep fewer values");
    }
  }
  if (axes.empty())
    throw ConfigError({}, "shardplan: 'sweep' has nothing to vary", "add --over tp=1,2,4,8");
  Table table;
  for (const Axis& axis : axes)
    table.columns.push_back({axis.path.rfind("plan.", 0) == 0 ? axis.path.substr(5) : axis.path});
  for (const auto* title :
       {"dp", "m", "iteration_s", "tokens_per_s", "mfu", "bubble", "peak_gib", "fits"})
    table.columns.push_back({title});
  table.columns.push_back({"error", false});
  const costmodel::Value root = loaded(path, file);
  std::size_t unreadable = 0;
  for (std::size_t point = 0; point < points && !(stopped && stopped()); ++point) {
    costmodel::Value value = root;
    std::vector<std::string> row;
    for (const auto& assignment : options.assignments)
      assign_path(value, assignment, mark_of_argument("--set", assignment));
    std::size_t index = point, stride = points;
    for (const Axis& axis : axes) {  // the last axis varies fastest
      stride /= axis.values.size();
      const std::string& chosen = axis.values[index / stride];
      index %= stride;
      assign_path(value, axis.path + "=" + chosen, mark_of_argument("--over", axis.path));
      row.push_back(chosen);
    }
    bool readable = false;
    try {
      const Scenario scenario = costmodel::read_scenario(value, file, path);
      readable = true;
      const auto cells = result_cells(scenario);
      row.insert(row.end(), cells.begin(), cells.end());
    } catch (const ConfigError& fault) {
      // If no point can be read, the axis or the scenario is wrong.
      if (!readable && ++unreadable == points) throw;
      row.insert(row.end(), 8, "");
      row.emplace_back(fault.what());
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

bool any_answer(const Table& swept) {
  return std::any_of(swept.rows.begin(), swept.rows.end(),
                     [](const auto& row) { return row.back().empty(); });
}

CommandResult sweep_command(const Session& session) {
  const Interruption interruption;
  const Table points = sweep(file_of(session), session.path, session.options, interruption.poll());
  CommandResult result{
      any_answer(points) ? 0 : no_answer, printed(points, session.options.format), {}};
  if (interruption.came()) {
    interruption.tell(fmt::format("sweep: {}: the first {} points are reported",
                                  interruption.text(), points.rows.size()),
                      result);
  }
  return result;
}

}  // namespace planner
