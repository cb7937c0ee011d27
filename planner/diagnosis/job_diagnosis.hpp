// Why a job is slow: predicted beside measured, and the likely culprits, each with a probability.
//
// Bayes over the hypotheses of job_hypotheses.hpp and "none of these". What is measured of a job:
// the time of an iteration, peak memory, the parts that its framework times, the ranks with the
// least and the most of a part, and how many iterations were slow. The likelihood of each under a
// hypothesis, whose prediction is the cost model's:
//
// - iteration: log(measured / predicted) is normal, with the 5th and 95th percentile of the
//   scenario's own interval (costmodel::ErrorBand), each side its own width;
// - a part: what the whole is off by, a part is off by too; beyond that a Student t of 3 degrees of
//   freedom, with the spread between two plans of one scenario (ErrorBand::pair_spread), and at
//   least a hundredth of the iteration;
// - most over least: a Student t likewise, with a scale of 0.05: ranks of one job differ less;
// - memory: log(measured / predicted), a Student t likewise with a scale of 0.04, of which the mean
//   deviation is the 4.3 % that docs/accuracy.md states for peak memory;
// - slow iterations: a binomial of the hypothesis's own share.
//
// "None of these" expects the same with much wider distributions, towards slower above all.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "costmodel/estimate/estimate.hpp"
#include "costmodel/scenario/scenario.hpp"
#include "planner/diagnosis/job_hypotheses.hpp"
#include "planner/diagnosis/job_prediction.hpp"
#include "planner/logs/training_log.hpp"

namespace planner {

struct Culprit {
  std::string name;     // of the hypothesis; "other-settings", "none-of-these"
  std::string told;     // its likeliest variant: "one node computes about 1.35 times slower ..."
  std::string remedy;   // a sentence
  std::string because;  // of the prior
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

// A setting that the scenario and the log say differently.
struct Contradiction {
  std::string key, scenario, log;
};

struct JobDiagnosis {
  costmodel::Estimate estimate;   // of the scenario's plan
  PredictedJob expected;          // the same by parts
  std::vector<Culprit> culprits;  // likeliest first; probabilities add up to 1
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

// Holds logs against a job, and prices each hypothesis once for all of them.
class JobDiagnoser {
 public:
  // The scenario outlives it.
  JobDiagnoser(const costmodel::Scenario& scenario, const costmodel::ParallelPlan& plan);
  JobDiagnosis diagnose(const TrainingLog& log);

 private:
  struct PricedVariant {
    std::string text;
    PredictedJob job;
  };
  using PricedVariants = std::vector<PricedVariant>;
  PricedVariants price(const std::vector<Variant>& variants, bool data_in_forward) const;
  const PricedVariants& priced(std::size_t hypothesis, bool data_in_forward);
  Suspect suspect() const { return {job_, scenario_.model, estimate_.iteration}; }

  const costmodel::Scenario& scenario_;
  Job job_;
  costmodel::Estimate estimate_;
  PredictedJob expected_;
  std::array<std::vector<std::optional<PricedVariants>>, 2> priced_;  // by data_in_forward
};

// Of one log.
JobDiagnosis diagnose_job(const costmodel::Scenario& scenario, const costmodel::ParallelPlan& plan,
                          const TrainingLog& log);

}  // namespace planner
