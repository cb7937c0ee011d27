#include "planner/commands/explain_command.hpp"

#include "costmodel/estimate/evaluator.hpp"
#include "planner/commands/plan_warnings.hpp"
#include "planner/commands/serving_session.hpp"
#include "planner/page/json_page.hpp"
#include "planner/report/explain.hpp"
#include "planner/report/json_report.hpp"
#include "planner/report/serving_explanation.hpp"
#include "planner/report/serving_report.hpp"
#include "planner/search/settled_serving.hpp"

namespace planner {

using namespace costmodel;

CommandResult explain_command(const Session& session) {
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

CommandResult explain_serving(const Session& session) {
  const ServingScenario written = load_serving(session);
  const auto s = settled_serving(written);
  if (!s) return without_serving_plan(session, written);
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

}  // namespace planner
