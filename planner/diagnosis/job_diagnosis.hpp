// Why a job is slow: predicted beside measured, and the likely culprits, each with a probability.
//
// Bayes over the hypotheses of job_hypotheses.hpp, pairs of them and "none of these", with the
// likelihoods of job_evidence.hpp; first of all, whether the log can be this job's
// (job_refusals.hpp).
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "costmodel/estimate/estimate.hpp"
#include "costmodel/scenario/scenario.hpp"
#include "planner/diagnosis/job_evidence.hpp"
#include "planner/diagnosis/job_hypotheses.hpp"
#include "planner/diagnosis/job_prediction.hpp"
#include "planner/diagnosis/job_refusals.hpp"
#include "planner/logs/training_log.hpp"

namespace planner {

struct Culprit {
  std::string name;     // of the hypothesis; "other-settings", "none-of-these"
  std::string what;     // its likeliest variant: "one node computes about 1.35 times slower ..."
  std::string remedy;   // a sentence
  std::string because;  // of the prior
  std::string test;     // what would settle it
  double prior = 0, probability = 0;
  PredictedJob predicted;  // of that variant
  // An iteration, were it repaired, and how much less that is: than the median now, than the mean
  // where the cause is in some iterations only. Negative where the fault helps.
  costmodel::Seconds repaired, gained;
};

// A hypothesis that the log itself excludes, and by which key.
struct RuledOut {
  std::string name, key, value;
};

struct JobDiagnosis {
  std::vector<Refusal> refusals;  // why the log cannot be this job's; the rest then means nothing
  costmodel::Estimate estimate;   // of the scenario's plan
  PredictedJob expected;          // the same by parts
  std::vector<Culprit> culprits;  // likeliest first; probabilities add up to 1
  // Names of culprits, the likeliest among them, that expect the same of all that the log shows, so
  // that only their priors order them; empty: the likeliest stands alone.
  std::vector<std::string> inseparable;
  std::vector<RuledOut> ruled_out;
  std::vector<Contradiction> contradictions;
};

// The size of an iteration by the scenario, for logs that print rates alone.
IterationSize iteration_size(const costmodel::Scenario& scenario);

// Settings of which a log states another value than the scenario and its plan; nothing is priced
// for it.
std::vector<Contradiction> contradictions_of(const costmodel::Scenario& scenario,
                                             const costmodel::ParallelPlan& plan,
                                             const TrainingLog& log);

class Suspects;  // the hypotheses of one log with their likelihoods

struct PricedVariant {
  std::string text;
  PredictedJob job;
  bool sized = false;  // one size of several
};

// Holds logs against a job, and prices each hypothesis once for all of them.
class JobDiagnoser {
 public:
  // The scenario outlives it.
  JobDiagnoser(const costmodel::Scenario& scenario, const costmodel::ParallelPlan& plan);
  JobDiagnosis diagnose(const TrainingLog& log);

 private:
  std::vector<PricedVariant> price(const std::vector<Variant>& variants, LogContent log) const;
  void add_hypotheses(const TrainingLog& log, Suspects& suspects, JobDiagnosis& d);
  bool explained(const std::vector<PricedVariant>& as_logged, const TrainingLog& log);
  Variant as_logged(const std::vector<Contradiction>& contradictions) const;
  bool explains(const std::vector<PricedVariant>& other, const TrainingLog& log) const;
  const std::vector<PricedVariant>& priced(std::size_t hypothesis, LogContent log);
  Suspect suspect() const {
    return {job_, scenario_.model, estimate_.iteration, estimate_.bubble_fraction};
  }

  const costmodel::Scenario& scenario_;
  Job job_;
  costmodel::Estimate estimate_;
  PredictedJob expected_;
  std::array<std::vector<std::optional<std::vector<PricedVariant>>>, 4>
      priced_;  // by LogContent::index()
};

// Of one log.
JobDiagnosis diagnose_job(const costmodel::Scenario& scenario, const costmodel::ParallelPlan& plan,
                          const TrainingLog& log);

}  // namespace planner
