#include "planner/commands/export_command.hpp"

#include <fmt/format.h>

#include "costmodel/base/escape.hpp"
#include "planner/commands/plan_warnings.hpp"
#include "planner/exchange/export_megatron.hpp"
#include "planner/exchange/launch_script.hpp"
#include "planner/report/json_report.hpp"

namespace planner {

using costmodel::ConfigError;
using costmodel::Evaluator;
using costmodel::Scenario;

CommandResult export_command(const Session& session) {
  if (session.options.to != "megatron") {
    const std::string given =
        session.options.to.empty()
            ? "export lacks --to"
            : fmt::format("cannot export to {}", costmodel::quote(session.options.to));
    throw ConfigError({}, "shardplan: " + given, "allowed: --to megatron");
  }
  Scenario s = load(session);
  const auto settled = settled_plan(s);
  if (!settled || settled->nothing_fits) return without_plan(session, s);
  const auto& plan = settled->plan;
  const MegatronExport exported = export_megatron(s, plan);
  Evaluator evaluator = evaluator_of(s);
  CommandResult result;
  result.warnings = plan_warnings(session.options, s, evaluator.estimate(plan));
  for (const auto& notes : {note_lines(settled->notes), note_lines(exported.notes)})
    result.warnings.insert(result.warnings.end(), notes.begin(), notes.end());
  if (session.options.format == Format::json) {
    Table table{{{"argument", false}}, {}};
    for (const auto& argument : exported.arguments) table.rows.push_back({argument});
    result.text = rows_json(table);
  } else {
    result.text = launch_script(exported, s, plan);
  }
  return result;
}

}  // namespace planner
