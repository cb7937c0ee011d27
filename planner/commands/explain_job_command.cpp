#include "planner/commands/explain_job_command.hpp"

#include <utility>

#include "costmodel/estimate/plan_estimate.hpp"
#include "planner/commands/interruption.hpp"
#include "planner/commands/job_operand.hpp"
#include "planner/commands/plan_warnings.hpp"
#include "planner/diagnosis/job_diagnosis.hpp"
#include "planner/report/job_report.hpp"
#include "planner/report/json_job.hpp"

namespace planner {

using namespace costmodel;

CommandResult explain_job_command(const Session& session) {
  const Options& options = session.options;
  std::vector<std::string> told;
  const Scenario s = read_job_operand(session, options.operands.front(), told).scenario;
  const auto settled = settled_plan(s, threads_of(options));
  if (!settled) return without_plan(session, s);
  JobReport job;
  if (options.operands.size() > 1) {
    job.log_file = options.operands[1];
    job.log = read_training_log(job.log_file, iteration_size(s));
    job.diagnosis = diagnose_job(s, settled->plan, *job.log);
    job.estimate = job.diagnosis->estimate;
  } else {
    job.estimate = estimate_of(s.model, s.cluster, s.training, settled->plan);
  }
  job.changes = helpful_changes(s, job.estimate);
  const Interruption interruption;
  job.best = best_plan(s, job.estimate, threads_of(options), interruption.poll());
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
