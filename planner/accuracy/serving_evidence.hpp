// Published measurements of serving, and what is predicted for them.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "costmodel/config/key_text.hpp"
#include "costmodel/config/search_path.hpp"
#include "costmodel/serving/serving_estimate.hpp"

namespace planner {

enum class ServingMetric { throughput, tpot, ttft, e2e };
inline constexpr std::array<std::string_view, 4> serving_metric_names{
    "output tokens/s", "time a token", "first token", "end to end"};

struct ServingFigure {
  ServingMetric metric = ServingMetric::throughput;
  double measured = 0;
  double predicted = 0;      // 0: not predicted
  double log_error() const;  // of predicted / measured
};

struct ServingRun {
  std::string source, id, confidence;
  costmodel::ServingScenario scenario;
  std::vector<ServingFigure> figures;
  std::string fault;  // why it is not predicted; "" if it is
  std::string device() const { return scenario.cluster.device.name; }
  std::string engine() const { return scenario.serving.engine.family; }
};

// The keys of a run of serving: "evidence.runs[].id".
std::vector<costmodel::KeyText> serving_evidence_keys();

// Whether the first of the files, or of the folder's, holds runs of serving: training's are another
// scorecard, and readers of either refuse the other's.
bool is_serving_evidence(const std::vector<std::string>& operands);

// The runs, with their measurements.
std::vector<ServingRun> read_serving_runs(const std::vector<std::string>& operands,
                                          const costmodel::ConfigPath& path);

// Fills in `predicted`, or `fault`. A run that does not fit is not predicted.
void predict(ServingRun& run);
// The same in closed form: a hundred times faster, for slopes.
void predict_in_closed_form(ServingRun& run);

// Sums of errors: every source counts alike, as in the scorecard of training.
struct ServingScore {
  std::size_t figures = 0, sources = 0, inside = 0;
  double mean_error = 0;    // of sources' mean |predicted / measured - 1|
  double median_error = 0;  // of figures
  double bias = 0;          // mean log(predicted / measured)
};
ServingScore score_of(const std::vector<ServingRun>& runs, ServingMetric metric,
                      const std::function<bool(const ServingRun&)>& counts);

}  // namespace planner
