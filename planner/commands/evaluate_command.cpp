#include "planner/commands/evaluate_command.hpp"

#include <utility>

#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/estimate/plan_estimate.hpp"
#include "costmodel/serving/engine.hpp"
#include "planner/commands/explain_trace_command.hpp"
#include "planner/commands/export_command.hpp"
#include "planner/commands/interruption.hpp"
#include "planner/commands/plan_extras.hpp"
#include "planner/diagnosis/job_diagnosis.hpp"
#include "planner/frameworks/read_job.hpp"
#include "planner/page/job_page.hpp"
#include "planner/page/json_page.hpp"
#include "planner/page/serving_page.hpp"
#include "planner/report/explain.hpp"
#include "planner/report/job_report.hpp"
#include "planner/report/json_job.hpp"
#include "planner/report/json_memory.hpp"
#include "planner/report/json_report.hpp"
#include "planner/report/json_serving.hpp"
#include "planner/report/memory_report.hpp"
#include "planner/report/serving_explanation.hpp"
#include "planner/report/serving_report.hpp"
#include "planner/search/settled_plan.hpp"

namespace planner {

using namespace costmodel;

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
  if (const std::string note = export_note(s, plan); !note.empty())
    result.warnings.push_back("note: " + note);
  const PlanExtras extras = extras_of(session, s, estimate);
  const auto json = [&] { return with_extras(estimate_json(estimate, s), extras, s); };
  result.page = page_of(session, s, json, &plan);
  if (session.options.format == Format::json) {
    result.text = json();
  } else if (session.options.format == Format::yaml) {
    result.text = scenario_yaml(session, s, plan);
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

namespace {

CommandResult memory_command(const Session& session, const Scenario& s, const ParallelPlan& plan,
                             Evaluator& evaluator) {
  const MemoryTrace trace = evaluator.memory_trace(plan);
  CommandResult result;
  result.status = trace.known() ? 0 : no_answer;
  if (wants_page(session.options))
    result.page = page_html(rows_json(memory_rows(trace)), s, {{}, trace});
  result.text = session.options.format == Format::json
                    ? memory_json(trace)
                    : heading(s, session.style) +
                          memory_report(trace, s.cluster.device.memory, session.style);
  return result;
}

}  // namespace

CommandResult explain_command(const Session& session) {
  Scenario s = load(session);
  const auto settled = settled_plan(s, threads_of(session.options));
  if (!settled) return without_plan(session, s);
  const auto& plan = settled->plan;
  Evaluator evaluator = evaluator_of(s);
  if (session.options.memory) return memory_command(session, s, plan, evaluator);
  const auto changes = fitting_changes(evaluator.estimate(plan), s, other_stacks(session));
  const auto json = [&] {
    Table table = explanation_table(plan, s, evaluator);
    for (auto& row : fitting_rows(changes)) table.rows.push_back(std::move(row));
    return rows_json(table);
  };
  CommandResult result{0, {}, note_lines(settled->notes)};
  result.page = page_of(session, s, json);
  result.text =
      session.options.format == Format::json
          ? json()
          : explanation(plan, s, evaluator, session.style) + fitting_report(changes, session.style);
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

namespace {

// The log of a job: the second operand, or the first one where that is arguments and log at once,
// as each log of Megatron-LM is.
std::optional<TrainingLog> log_of(const Session& session, const Scenario& s, std::string& file) {
  const auto& operands = session.options.operands;
  file = operands.back();
  if (operands.size() > 1) return read_training_log(file, iteration_size(s));
  if (format_of(scenario_file(file, session.path)) == JobFormat::scenario) return {};
  try {
    return read_training_log(file, iteration_size(s));
  } catch (const ConfigError&) {
    return {};  // arguments alone
  }
}

// What the log states of the job, for what its arguments leave out. A log that cannot be read is
// reported when it is read for its times.
std::vector<LoggedSetting> logged_settings(const Session& session) {
  if (session.options.operands.size() < 2) return {};
  try {
    return read_training_log(session.options.operands[1], {1, 1}).settings;
  } catch (const ConfigError&) {
    return {};
  }
}

void diagnose_log(const Session& session, const Scenario& s, const ParallelPlan& plan,
                  JobReport& job) {
  if (job.log->out_of_memory) {
    job.memory =
        answer_out_of_memory(s, job.estimate, *job.log->out_of_memory, other_stacks(session));
    job.fitting = job.memory->changes;
    return;
  }
  job.diagnosis = diagnose_job(s, plan, *job.log);
}

}  // namespace

CommandResult explain_job_command(const Session& session) {
  const Options& options = session.options;
  std::vector<std::string> told;
  const Scenario s =
      read_job_operand(session, options.operands.front(), told, logged_settings(session)).scenario;
  const auto settled = settled_plan(s, threads_of(options));
  if (!settled) return without_plan(session, s);
  if (names_traces(options)) return explain_traces(session, s, settled->plan);
  JobReport job;
  job.log = log_of(session, s, job.log_file);
  job.estimate = estimate_of(s.model, s.cluster, s.training, settled->plan);
  if (job.log) diagnose_log(session, s, settled->plan, job);
  job.changes = helpful_changes(s, job.estimate);
  if (!job.memory) job.fitting = fitting_changes(job.estimate, s, other_stacks(session));
  const Interruption interruption(options);
  job.best = best_plan(s, job.estimate, threads_of(options), interruption.poll());
  job.stopped = interruption.came();
  const bool refused = job.diagnosis && !job.diagnosis->refusals.empty();
  CommandResult result{refused ? no_answer : 0, {}, plan_warnings(options, s, job.estimate)};
  for (auto& line : told) result.warnings.push_back(std::move(line));
  for (auto& line : note_lines(settled->notes)) result.warnings.push_back(std::move(line));
  result.text =
      options.format == Format::json ? job_json(job, s) : job_report(job, s, session.style);
  if (wants_page(options)) result.page = job_page(job, s, job_json(job, s));
  if (job.stopped) interruption.tell("explain-job: stopped before the best plan was found", result);
  return result;
}

}  // namespace planner
