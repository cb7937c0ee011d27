#include "planner/commands/sweep_serving.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "costmodel/base/error.hpp"
#include "costmodel/serving/serving_reader.hpp"
#include "planner/commands/serving_session.hpp"
#include "planner/report/serving_comparison.hpp"
#include "planner/report/serving_report.hpp"
#include "planner/search/settled_serving.hpp"

namespace planner {

using namespace costmodel;

namespace {

SweptPoint result_of(const ServingScenario& written) {
  SweptPoint point;
  point.searched = !written.plan.tp && !written.plan.pp && !written.plan.ep;
  const auto s = settled_serving(written);
  if (!s) {
    point.error = no_serving_plan;
    return point;
  }
  const ServingEstimate e = planned_estimate(*s);
  point.cells = served_cells(e);
  point.plan = fmt::format("{} · {}", plan_text(*s, e.sizes), to_string(e.weights));
  return point;
}

SweptPoint priced(const ServingScenario& written) {
  try {
    return result_of(written);
  } catch (const ConfigError& fault) {
    return {.cells = {}, .plan = {}, .error = fault.what()};
  }
}

}  // namespace

Swept sweep_serving(const Session& session, const std::function<bool()>& stopped) {
  const Options& options = session.options;
  refuse_training_flags(options);
  if (options.weak) {
    throw ConfigError({}, "shardplan: --weak goes with training, not with serving",
                      "sweep serving.concurrency beside cluster.devices");
  }
  const std::string file = file_of(session);
  SweptWorkload serving;
  serving.root = serving_tree(file, session.path, options.assignments);
  serving.read = [&](const Value& value) -> PricedPoint {
    const std::string name = std::filesystem::path(file).stem().string();
    return [s = read_serving(value, name, session.path)](int) { return priced(s); };
  };
  const SweptPoints swept = sweep_points(options, serving, stopped);
  std::vector<Column> columns;
  for (const auto& title : served_titles()) columns.push_back({title});
  Swept result{sweep_table(swept, columns, true), {}, swept.unreadable};
  if (std::ranges::any_of(swept.points, &SweptPoint::searched)) {
    result.notes.emplace_back(
        "the plan was searched at every point: the column `plan` has what was chosen");
  }
  return result;
}

CommandResult sweep_serving_command(const Session& session) {
  return sweep_result(session, [&](const std::function<bool()>& stopped) {
    return sweep_serving(session, stopped);
  });
}

}  // namespace planner
