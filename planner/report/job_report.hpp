// What `explain-job` prints of a job: the culprit first, then what to do, then the numbers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "costmodel/scenario/scenario.hpp"
#include "planner/diagnosis/job_changes.hpp"
#include "planner/diagnosis/job_diagnosis.hpp"
#include "planner/diagnosis/memory_answer.hpp"
#include "planner/diagnosis/remedies.hpp"
#include "planner/logs/training_log.hpp"
#include "planner/report/plan_report.hpp"
#include "planner/report/table.hpp"

namespace planner {

struct JobReport {
  costmodel::Estimate estimate;  // of the scenario's plan
  std::string log_file;
  std::optional<TrainingLog> log;         // none: only the prediction, and what would help
  std::optional<JobDiagnosis> diagnosis;  // of the log
  std::optional<MemoryAnswer> memory;     // of a log in which an allocation failed
  std::vector<JobChange> changes;
  std::vector<Remedy> fitting;  // changes with which it would fit, if it does not
  std::optional<BestPlan> best;
  bool stopped = false;  // before the best plan was found
};

std::string job_report(const JobReport& job, const costmodel::Scenario& scenario,
                       const ReportStyle& style);

// Parts of it, for the page: the culprit to act on, which where nothing is settled is the likeliest
// fault; the verdict and the measured time as sentences; causes that the log cannot separate, ""
// for none.
const Culprit& job_suspect(const JobDiagnosis& diagnosis);
std::string job_verdict(const JobReport& job);
std::string measured_text(const JobReport& job);
std::string inseparable_text(const JobDiagnosis& diagnosis);

// Parts of it, for the tests and the page: culprits with their probabilities; predicted beside
// measured.
Table culprit_table(const JobDiagnosis& diagnosis);
Table job_parts_table(const JobDiagnosis& diagnosis, const TrainingLog& log);

}  // namespace planner
