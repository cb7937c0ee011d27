#include "planner/commands/evaluate_command.hpp"

#include "planner/commands/plan_warnings.hpp"
#include "planner/report/json_report.hpp"

namespace planner {

using costmodel::Evaluator;
using costmodel::Scenario;

CommandResult evaluate_command(const Session& session) {
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

}  // namespace planner
