// Compares predictions with published, measured runs. Each run is a scenario with its measurements.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "costmodel/config/search_path.hpp"
#include "costmodel/estimate/estimate.hpp"
#include "planner/accuracy/evidence.hpp"
#include "planner/accuracy/run_kind.hpp"

namespace planner {

// Seconds per iteration; empty when the run cannot be expressed or nothing fits.
std::optional<double> predicted_iteration(const EvidenceRun& run,
                                          const costmodel::ConfigPath& path);

// One measured quantity of one run. A non-empty `error` says why there is no prediction; the
// figures are then meaningless.
struct ValidationRow {
  std::string id;
  std::string source;    // stem of the evidence file
  std::string quantity;  // iteration_s, peak_memory_bytes, peak_allocated_bytes, fits
  double measured = 0;   // fits: 1 or 0
  double predicted = 0;
  std::optional<costmodel::Interval> interval;  // for iteration_s
  std::string error;
  RunFacts facts;  // features of the run; empty when its scenario cannot be read
  // How its source's own figures contradict each other, if they do. Such a row is listed, but
  // excluded from all figures.
  std::string contradicted;
  // Of a row of memory, what it depends on and the source does not state: listed, in no figure.
  std::string unstated;
  std::optional<costmodel::Breakdown> breakdown;  // for iteration_s
  // For iteration_s of a profiled run.
  std::optional<KindSeconds> kinds_measured, kinds_predicted;
  double peak = 0, capacity = 0;  // bytes, predicted, on the fullest stage; of fits
  std::string_view counted;       // of peak_memory_bytes: what its stack's log counts
  bool counts() const { return error.empty() && contradicted.empty() && unstated.empty(); }
  bool predicted_time() const { return quantity == "iteration_s" && counts(); }
  double error_pct() const { return 100 * (predicted - measured) / measured; }
  bool inside() const {
    return interval && measured >= interval->low.value && measured <= interval->high.value;
  }
  // Of a 90 % interval [l, u] of ln(x), 100 times (u - l) + 20 (l - x)+ + 20 (x - u)+ (Gneiting and
  // Raftery 2007, "Strictly proper scoring rules", equation 43): width in per cent, and what it
  // misses. Least for the true quantiles. 0 without an interval.
  double interval_score() const;
};

// Figures over the rows of one quantity that have a prediction; errors in per cent of the measured
// value.
struct ErrorFigures {
  int rows = 0;
  double mape = 0, median_ape = 0, p90_ape = 0, max_ape = 0, bias = 0, coverage = 0;
  // Of the rows with an interval, mean of ValidationRow::interval_score.
  double interval_score = 0;
};

ErrorFigures figures_of(const std::vector<ValidationRow>& rows, const std::string& quantity);

// Predictions of whether runs fit in memory, for runs that fitted and runs that ran out of memory.
struct FitFigures {
  int fitted = 0, called_too_large = 0;
  int did_not_fit = 0, recognised = 0;
};

using FiguresByName = std::map<std::string, ErrorFigures>;

struct ValidationSummary {
  ErrorFigures all;         // iteration_s
  double macro_mape = 0;    // mean over sources of the source's mape, iteration_s
  FiguresByName by_source;  // iteration_s, also the next ones
  FiguresByName by_device, by_framework, by_parallelism, by_precision;
  FiguresByName by_setting;        // device, framework and model family together
  ErrorFigures memory;             // peak_memory_bytes
  ErrorFigures allocated;          // peak_allocated_bytes
  FiguresByName memory_by_source;  // sources that have any
  // What their logs print, which the predicted peak is of: device, reserved, allocated.
  std::map<std::string, std::set<std::string_view>> counted_by_source;
  double memory_macro = 0;  // mean error over these sources
  FitFigures fits;          // fits
  std::map<std::string, FitFigures> fits_by_source;
  int unpredicted = 0;               // runs with an error
  int contradicted = 0;              // runs that their source contradicts
  int unstated = 0;                  // runs whose memory their source leaves open
  int fitted_called_too_large = 0;   // runs that ran, predicted not to fit
  int too_large_called_fitting = 0;  // runs that ran out of memory, predicted to fit
};

ValidationSummary summary_of(const std::vector<ValidationRow>& rows);

// The rows of all runs in `operands`, read by read_evidence_runs. A run that cannot be predicted is
// a row with an error.
std::vector<ValidationRow> validate(const std::vector<std::string>& operands,
                                    const costmodel::ConfigPath& path,
                                    std::vector<std::string>* left_out = nullptr);

}  // namespace planner
