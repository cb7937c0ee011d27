#include "planner/commands/explain_command.hpp"

#include "planner/report/explain.hpp"
#include "planner/report/json_report.hpp"

namespace planner {

using costmodel::Evaluator;
using costmodel::Scenario;

CommandResult explain_command(const Session& session) {
  Scenario s = load(session);
  const auto plan = settled_plan(s);
  if (!plan) return without_plan(session, s);
  Evaluator evaluator = evaluator_of(s);
  if (session.options.format == Format::json)
    return {0, rows_json(explanation_table(*plan, s, evaluator)), {}};
  return {0, explanation(*plan, s, evaluator, session.style), {}};
}

}  // namespace planner
