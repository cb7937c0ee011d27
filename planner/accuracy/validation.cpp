#include "planner/accuracy/validation.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/estimate/kernel_list.hpp"
#include "costmodel/scenario/scenario.hpp"
#include "planner/search/settled_plan.hpp"

namespace planner {

using namespace costmodel;

namespace {

// The estimate of a run, or why there is none.
struct Prediction {
  std::optional<Estimate> estimate;
  costmodel::Bytes peak, allocated;  // where they are measured
  std::string_view counted;          // what the log prints of the peak
  std::optional<KindSeconds> kinds;
  std::string error;
  RunFacts facts;
  std::string open;  // keys of the plan that the source leaves open
};

// Of the first pipeline rank's first stage: profiled runs have one.
KindSeconds kinds_of(const costmodel::ParallelPlan& plan, const Estimate& estimate,
                     costmodel::Evaluator& evaluator) {
  const costmodel::PlanCost& cost = evaluator.cost(plan);
  const auto seconds = stage_kernels(cost, 0, plan, evaluator).by_kind(cost.micro_batches);
  KindSeconds kinds{};
  kinds.back() = estimate.iteration.value;
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    kinds[i] = seconds[i].value;
    kinds.back() -= seconds[i].value;
  }
  return kinds;
}

Prediction predict(const EvidenceRun& run, const costmodel::ConfigPath& path) {
  Prediction prediction;
  try {
    Scenario scenario = scenario_of(run, path);
    prediction.facts = facts_of(scenario);
    if (!scenario.plan.automatic.empty())
      prediction.open = fmt::format("{}", fmt::join(scenario.plan.automatic, ", "));
    take_defaults(scenario);
    const auto settled = settled_run(scenario);
    if (settled) {
      add_plan(prediction.facts, settled->plan);
      const auto counts = static_cast<std::size_t>(scenario.training.stack.memory.reported);
      prediction.counted = costmodel::reported_memory_names[counts];
      costmodel::Evaluator evaluator(scenario.model, scenario.cluster, scenario.training);
      prediction.estimate = evaluator.estimate(settled->plan);
      if (run.measured.peak_memory) prediction.peak = evaluator.reported_peak(*prediction.estimate);
      if (run.measured.peak_allocated)
        prediction.allocated = evaluator.counted_peak(*prediction.estimate).allocated;
      if (run.kinds && settled->plan.even())
        prediction.kinds = kinds_of(settled->plan, *prediction.estimate, evaluator);
    } else {
      prediction.error = no_valid_choice;
    }
  } catch (const ConfigError& fault) {
    prediction.error = fault.what();
  }
  return prediction;
}

void add_rows(const EvidenceRun& run, const costmodel::ConfigPath& path,
              std::vector<ValidationRow>& rows) {
  const Prediction prediction = predict(run, path);
  const auto add = [&](const char* quantity, double measured, double predicted) {
    rows.push_back({run.id,
                    run.source,
                    quantity,
                    measured,
                    predicted,
                    {},
                    prediction.error,
                    prediction.facts,
                    run.contradicted,
                    {},
                    {},
                    {},
                    {},
                    0,
                    0,
                    {}});
  };
  // A peak is of one plan; whether any of those left open would fit is an answer all the same.
  const std::string& left_open = run.unstated.empty() ? prediction.open : run.unstated;
  const Estimate* e = prediction.estimate ? &*prediction.estimate : nullptr;
  if (run.measured.iteration) {
    add("iteration_s", *run.measured.iteration, e != nullptr ? e->iteration.value : 0);
    if (e != nullptr) {
      rows.back().interval = e->interval;
      rows.back().breakdown = e->breakdown;
      rows.back().kinds_measured = run.kinds;
      rows.back().kinds_predicted = prediction.kinds;
    }
  }
  if (run.measured.peak_memory) {
    add("peak_memory_bytes", *run.measured.peak_memory, prediction.peak.value);
    rows.back().unstated = left_open;
    rows.back().counted = prediction.counted;
  }
  if (run.measured.peak_allocated) {
    add("peak_allocated_bytes", *run.measured.peak_allocated, prediction.allocated.value);
    rows.back().unstated = left_open;
  }
  if (run.measured.fits || run.measured.iteration) {
    add("fits", run.measured.ran() ? 1 : 0, e != nullptr && e->fits() ? 1 : 0);
    rows.back().unstated = run.unstated;
    if (e != nullptr) {
      rows.back().peak = e->peak.value;
      rows.back().capacity = e->capacity.value;
    }
  }
}

double percentile(std::vector<double> sorted, double fraction) {
  if (sorted.empty()) return 0;
  std::ranges::sort(sorted);
  const auto at =
      static_cast<std::size_t>(std::ceil(fraction * static_cast<double>(sorted.size())));
  return sorted[std::min(sorted.size() - 1, at > 0 ? at - 1 : 0)];
}

}  // namespace

double ValidationRow::interval_score() const {
  if (!interval) return 0;
  constexpr double missed = 2 / 0.1;  // 2 / alpha, of an interval that alpha of the runs miss
  const double low = std::log(interval->low.value), high = std::log(interval->high.value),
               x = std::log(measured);
  return 100 * (high - low + missed * (std::max(0.0, low - x) + std::max(0.0, x - high)));
}

ErrorFigures figures_of(const std::vector<ValidationRow>& rows, const std::string& quantity) {
  ErrorFigures f;
  std::vector<double> apes;
  int inside = 0, intervals = 0;
  for (const auto& row : rows) {
    if (row.quantity != quantity || !row.counts()) continue;
    apes.push_back(std::abs(row.error_pct()));
    f.mape += apes.back();
    f.bias += row.error_pct();
    f.max_ape = std::max(f.max_ape, apes.back());
    inside += row.inside() ? 1 : 0;
    intervals += row.interval ? 1 : 0;
    f.interval_score += row.interval_score();
  }
  if (intervals > 0) f.interval_score /= intervals;
  f.rows = static_cast<int>(apes.size());
  if (f.rows == 0) return f;
  f.mape /= f.rows;
  f.bias /= f.rows;
  f.coverage = 100.0 * inside / f.rows;
  f.median_ape = percentile(apes, 0.5);
  f.p90_ape = percentile(apes, 0.9);
  return f;
}

namespace {

using Rows = std::vector<ValidationRow>;

// The same figures by value of a feature, over predicted iteration times.
FiguresByName figures_by(const Rows& rows, std::string RunFacts::*fact) {
  std::map<std::string, Rows> groups;
  for (const auto& row : rows) {
    if (row.predicted_time()) groups[row.facts.*fact].push_back(row);
  }
  FiguresByName figures;
  for (const auto& [name, own] : groups) figures[name] = figures_of(own, "iteration_s");
  return figures;
}

FitFigures verdicts_of(const Rows& rows) {
  FitFigures f;
  for (const auto& row : rows) {
    if (row.quantity != "fits" || !row.counts()) continue;
    const bool ran = row.measured > 0, called_fitting = row.predicted > 0;
    ++(ran ? f.fitted : f.did_not_fit);
    if (ran && !called_fitting) ++f.called_too_large;
    if (!ran && !called_fitting) ++f.recognised;
  }
  return f;
}

void add_sources(const Rows& rows, ValidationSummary& summary) {
  std::map<std::string, Rows> by_source;
  for (const auto& row : rows) by_source[row.source].push_back(row);
  int timed_sources = 0;
  for (const auto& [source, own] : by_source) {
    const ErrorFigures timed = figures_of(own, "iteration_s");
    summary.by_source[source] = timed;
    const ErrorFigures memory = figures_of(own, "peak_memory_bytes");
    if (memory.rows > 0) {
      summary.memory_by_source[source] = memory;
      summary.memory_macro += memory.mape;
      for (const ValidationRow& row : own) {
        if (row.counts() && !row.counted.empty())
          summary.counted_by_source[source].insert(row.counted);
      }
    }
    const FitFigures fits = verdicts_of(own);
    if (fits.fitted + fits.did_not_fit > 0) summary.fits_by_source[source] = fits;
    if (timed.rows == 0) continue;
    summary.macro_mape += timed.mape;
    ++timed_sources;
  }
  if (timed_sources > 0) summary.macro_mape /= timed_sources;
  if (!summary.memory_by_source.empty())
    summary.memory_macro /= static_cast<double>(summary.memory_by_source.size());
}

}  // namespace

ValidationSummary summary_of(const Rows& rows) {
  ValidationSummary summary;
  summary.all = figures_of(rows, "iteration_s");
  add_sources(rows, summary);
  summary.by_device = figures_by(rows, &RunFacts::device);
  summary.by_framework = figures_by(rows, &RunFacts::framework);
  summary.by_parallelism = figures_by(rows, &RunFacts::parallelism);
  summary.by_precision = figures_by(rows, &RunFacts::precision);
  summary.by_setting = figures_by(rows, &RunFacts::setting);
  summary.memory = figures_of(rows, "peak_memory_bytes");
  summary.allocated = figures_of(rows, "peak_allocated_bytes");
  summary.fits = verdicts_of(rows);
  for (const auto& row : rows) {
    if (row.quantity != "fits") continue;  // one a run
    summary.unpredicted += row.error.empty() ? 0 : 1;
    summary.contradicted += row.contradicted.empty() ? 0 : 1;
    summary.unstated += row.unstated.empty() ? 0 : 1;
  }
  summary.fitted_called_too_large = summary.fits.called_too_large;
  summary.too_large_called_fitting = summary.fits.did_not_fit - summary.fits.recognised;
  return summary;
}

std::optional<double> predicted_iteration(const EvidenceRun& run,
                                          const costmodel::ConfigPath& path) {
  try {
    Scenario scenario = scenario_of(run, path);
    take_defaults(scenario);
    const auto settled = settled_run(scenario);
    if (!settled) return {};
    return costmodel::Evaluator(scenario.model, scenario.cluster, scenario.training)
        .iteration_time(settled->plan)
        .value;
  } catch (const ConfigError&) {
    return {};
  }
}

std::vector<ValidationRow> validate(const std::vector<std::string>& operands,
                                    const costmodel::ConfigPath& path,
                                    std::vector<std::string>* left_out) {
  std::vector<ValidationRow> rows;
  for (const EvidenceRun& run : read_evidence_runs(operands, left_out)) add_rows(run, path, rows);
  return rows;
}

}  // namespace planner
