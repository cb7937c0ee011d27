#include "planner/commands/explain_command.hpp"

#include "costmodel/estimate/evaluator.hpp"
#include "planner/commands/plan_warnings.hpp"
#include "planner/commands/serving_commands.hpp"
#include "planner/report/explain.hpp"
#include "planner/report/json_report.hpp"

namespace planner {

using costmodel::Evaluator;
using costmodel::Scenario;

CommandResult explain_command(const Session& session) {
  if (is_serving(session)) return explain_serving(session);
  Scenario s = load(session);
  const auto settled = settled_plan(s, threads_of(session.options));
  if (!settled) return without_plan(session, s);
  const auto& plan = settled->plan;
  Evaluator evaluator = evaluator_of(s);
  const auto json = [&] { return rows_json(explanation_table(plan, s, evaluator)); };
  CommandResult result{0, {}, note_lines(settled->notes)};
  result.page = page_of(session, s, json);
  result.text = session.options.format == Format::json
                    ? json()
                    : explanation(plan, s, evaluator, session.style);
  return result;
}

}  // namespace planner
