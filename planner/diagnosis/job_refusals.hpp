// What cannot be: a log that is not this job's, or that shows too little to judge by.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "costmodel/estimate/estimate.hpp"
#include "costmodel/scenario/scenario.hpp"
#include "planner/diagnosis/job_prediction.hpp"
#include "planner/logs/training_log.hpp"

namespace planner {

// A setting that the scenario and the log say differently.
struct Contradiction {
  std::string key, scenario, log;
};

struct Refusal {
  std::string name;    // "above-peak", "above-published", "other-job", "too-fast",
                       // "too-few-iterations", "unexplained"
  std::string what;    // a sentence, with its figures
  std::string remedy;  // a sentence
};

// `estimate`: of the scenario's plan. `contradictions`: settings of which the log states another
// value; those that set_setting() knows are no reason for refusal where the job with the log's
// settings takes the time that was measured: `explained`.
std::vector<Refusal> refusals_of(const costmodel::Scenario& scenario,
                                 const costmodel::Estimate& estimate, const TrainingLog& log,
                                 const std::vector<Contradiction>& contradictions, bool explained);

// Of a log that no cause explains and that is far from its prediction.
Refusal unexplained(const costmodel::Estimate& estimate, const TrainingLog& log);

// Of a log whose memory is far from what its likeliest cause predicts.
std::optional<Refusal> other_memory(const TrainingLog& log, const PredictedJob& likeliest,
                                    std::string_view cause);

}  // namespace planner
