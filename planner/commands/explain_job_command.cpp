#include "planner/commands/explain_job_command.hpp"

#include <filesystem>
#include <utility>

#include "planner/commands/interruption.hpp"
#include "planner/commands/plan_warnings.hpp"
#include "planner/diagnosis/job_diagnosis.hpp"
#include "planner/frameworks/read_job.hpp"
#include "planner/report/job_report.hpp"
#include "planner/report/json_job.hpp"

namespace planner {

using costmodel::Scenario;

namespace {

// The scenario of the first operand, in whatever words that is. Notes and what was left out go to
// `told`. Throws ConfigError for the first key that a prediction needs and nobody says.
Scenario job_of(const Session& session, std::vector<std::string>& told) {
  const Options& options = session.options;
  const std::string file = file_of(session);
  if (format_of(file) == JobFormat::scenario && options.cluster.empty()) return load(session);
  ImportedJob job = read_job(file);
  if (!options.cluster.empty()) set_cluster(job, options.cluster);
  for (const auto& assignment : options.assignments)
    set_key(job, assignment, costmodel::mark_of_argument("--set", assignment));
  if (!job.missing.empty()) {
    const MissingKey& key = job.missing.front();
    throw costmodel::ConfigError({file, 0, 0}, "does not say " + key.key, key.remedy);
  }
  for (const auto& note : job.notes) told.push_back("note: " + note);
  for (const auto& word : job.left_out) told.push_back("note: left out: " + word);
  return read_scenario(job.scenario, std::filesystem::path(file).stem().string(), session.path);
}

}  // namespace

CommandResult explain_job_command(const Session& session) {
  const Options& options = session.options;
  std::vector<std::string> told;
  const Scenario s = job_of(session, told);
  const auto settled = settled_plan(s);
  if (!settled) return without_plan(session, s);
  JobReport job;
  if (options.operands.size() > 1) {
    job.log_file = options.operands[1];
    job.log = read_training_log(job.log_file, iteration_size(s));
    job.diagnosis = diagnose_job(s, settled->plan, *job.log);
    job.estimate = job.diagnosis->estimate;
  } else {
    job.estimate = evaluator_of(s).estimate(settled->plan);
  }
  job.changes = helpful_changes(s, job.estimate);
  const Interruption interruption;
  job.best = best_plan(s, job.estimate, interruption.poll());
  job.stopped = interruption.came();
  CommandResult result{0, {}, plan_warnings(options, s, job.estimate)};
  for (auto& line : told) result.warnings.push_back(std::move(line));
  for (auto& line : note_lines(settled->notes)) result.warnings.push_back(std::move(line));
  result.text =
      options.format == Format::json ? job_json(job, s) : job_report(job, s, session.style);
  if (job.stopped) interruption.tell("explain-job: stopped before the best plan was found", result);
  return result;
}

}  // namespace planner
