#include "planner/commands/evaluate_command.hpp"

#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/serving/engine.hpp"
#include "planner/commands/plan_extras.hpp"
#include "planner/commands/plan_warnings.hpp"
#include "planner/commands/serving_session.hpp"
#include "planner/diagnosis/expert_remedy.hpp"
#include "planner/page/serving_page.hpp"
#include "planner/report/json_report.hpp"
#include "planner/report/json_serving.hpp"
#include "planner/report/serving_report.hpp"
#include "planner/search/settled_serving.hpp"

namespace planner {

using namespace costmodel;

namespace {

// With what the plan would fit, if it does not, on a line.
void add_remedies(const Estimate& estimate, Evaluator& evaluator, std::vector<std::string>& lines) {
  if (estimate.fits()) return;
  for (const std::string& remedy : fitting_expert_sizes(estimate.plan, evaluator))
    lines.push_back("note: the plan with " + remedy);
}

}  // namespace

CommandResult evaluate_command(const Session& session) {
  Scenario s = load(session);
  const auto settled = settled_plan(s, threads_of(session.options));
  if (!settled) return without_plan(session, s);
  const auto& plan = settled->plan;
  Evaluator evaluator = evaluator_of(s);
  auto estimate = evaluator.estimate(plan);
  estimate.notes.insert(estimate.notes.begin(), settled->notes.begin(), settled->notes.end());
  write_placement(session, s, plan);
  CommandResult result{.status = estimate.fits() ? 0 : no_answer};
  result.warnings = memory_warnings(estimate);
  add_remedies(estimate, evaluator, result.warnings);
  const PlanExtras extras = extras_of(session, s, estimate);
  const auto json = [&] { return with_extras(estimate_json(estimate, s), extras, s); };
  result.page = page_of(session, s, json, &plan);
  if (session.options.format == Format::json) {
    result.text = json();
  } else if (session.options.format == Format::yaml) {
    result.text = scenario_yaml(session, plan);
  } else {
    result.text = heading(s, session.style) + plan_report(estimate, s, session.style) +
                  extras_report(extras, s, session.style);
  }
  return result;
}

CommandResult evaluate_serving(const Session& session) {
  const ServingScenario written = load_serving(session);
  const auto s = settled_serving(written);
  if (!s) return without_serving_plan(session, written);
  const ServingEstimate e = planned_estimate(*s);
  const auto fit = find_serving_fit(session.path);
  CommandResult result{e.fits ? 0 : no_answer, {}, {}};
  if (wants_page(session.options)) result.page = serving_page(*s, e, fit);
  switch (session.options.format) {
    case Format::json: result.text = serving_json(*s, e, fit); break;
    case Format::yaml: result.text = serving_yaml(session, *s); break;
    default:
      result.text = serving_heading(*s, session.style) + serving_report(*s, e, fit, session.style);
  }
  return result;
}

}  // namespace planner
