#include "planner/validation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <utility>

#include "costmodel/config_reader.hpp"
#include "costmodel/scenario.hpp"
#include "costmodel/yaml_io.hpp"
#include "planner/search.hpp"

namespace planner {

namespace fs = std::filesystem;
using costmodel::ConfigError;
using costmodel::Estimate;
using costmodel::Scenario;
using costmodel::Value;

namespace {

// The files named, and those in the folders named.
// Whether a file of a folder has runs in it, and is not what runs refer to.
bool has_runs(const fs::path& file) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);)
    if (line.rfind("runs:", 0) == 0) return true;
  return false;
}

// Files as named, and those of folders that hold runs; of folders, the names of the others go to
// `left_out`.
std::vector<std::string> evidence_files(const std::vector<std::string>& operands,
                                        std::vector<std::string>* left_out) {
  std::vector<std::string> files;
  for (const auto& operand : operands) {
    std::error_code status;
    if (!fs::is_directory(operand, status)) {
      files.push_back(operand);
      continue;
    }
    std::vector<std::string> inside;
    for (const auto& entry : fs::directory_iterator(operand, status)) {
      if (entry.path().extension() != ".yaml") continue;
      if (has_runs(entry.path())) {
        inside.push_back(entry.path().string());
      } else if (left_out != nullptr) {
        left_out->push_back(entry.path().string());
      }
    }
    if (inside.empty()) {
      throw ConfigError({operand, 0, 0}, "holds no *.yaml with runs",
                        "name a folder of evidence files");
    }
    std::sort(inside.begin(), inside.end());
    files.insert(files.end(), inside.begin(), inside.end());
  }
  return files;
}

Measured read_measured(const Value& map) {
  costmodel::MapReader reader(map, "measured");
  Measured measured;
  measured.iteration = reader.number("iteration_s", costmodel::Dimension::time, 1e-9, 1e9);
  measured.peak_memory = reader.number("peak_memory_bytes", costmodel::Dimension::size, 1, 1e15);
  measured.fits = reader.boolean("fits");
  reader.finish();
  return measured;
}

struct Run {
  std::string id;
  Value scenario;
  Measured measured;
  std::string contradicted;
};

Run read_run(const Value& map) {
  costmodel::MapReader reader(map, "run");
  Run run;
  run.id = read_text(reader.required("id"), "id");
  run.measured = read_measured(reader.required("measured"));
  run.contradicted = reader.text("contradicted").value_or("");
  run.scenario.kind = Value::Kind::map;
  run.scenario.mark = map.mark;
  for (const auto* key : {"model", "cluster", "training", "plan", "search"}) {
    if (const Value* part = reader.optional(key)) run.scenario.set(key, *part);
  }
  for (const auto* key : {"reported", "where", "confidence", "notes", "flags"})
    reader.optional(key);
  reader.finish();
  return run;
}

std::vector<Run> read_evidence(const std::string& file) {
  const Value root = costmodel::load_yaml(file);
  costmodel::MapReader reader(root, "evidence");
  for (const auto* key : {"source", "notes"}) reader.optional(key);
  const Value* defaults = reader.optional("defaults");
  const Value& list = reader.required("runs");
  reader.finish();
  std::vector<Run> runs;
  for (const Value& run : list.items) {
    runs.push_back(read_run(defaults != nullptr ? merged(*defaults, run) : run));
  }
  return runs;
}

// The estimate of a run, or why there is none.
struct Prediction {
  std::optional<Estimate> estimate;
  std::string error;
  RunFacts facts;
};

// Where a source leaves the micro-batch or the stages of a rank open, the framework's own defaults
// go before the best choice.
void take_defaults(Scenario& scenario) {
  costmodel::PlanRequest& plan = scenario.plan;
  const costmodel::StackSpec& stack = scenario.training.stack;
  const std::int64_t pp = plan.pp.value_or(1);
  if (pp == 1) return;
  const auto settle = [&plan](std::string_view key, auto& field, std::int64_t value) {
    if (value == 0 || !plan.is_auto(key)) return;
    field = static_cast<int>(value);
    std::erase(plan.automatic, key);
  };
  settle("vpp", plan.vpp, stack.default_stages);
  const std::int64_t ranks = scenario.cluster.devices / plan.tp.value_or(1) / plan.cp.value_or(1);
  const std::int64_t parts = ranks * stack.default_micro_batches;  // dp · pp · micro-batches / pp
  if (parts > 0 && scenario.training.global_batch % parts == 0)
    settle("micro_batch", plan.micro_batch, scenario.training.global_batch / parts);
}

Prediction predict(const Run& run, const costmodel::ConfigPath& path) {
  Prediction prediction;
  try {
    Scenario scenario = read_scenario(run.scenario, run.id, path);
    prediction.facts = facts_of(scenario);
    take_defaults(scenario);
    const auto plan = settled_plan(scenario);
    if (plan) {
      add_plan(prediction.facts, *plan);
      costmodel::Evaluator evaluator(scenario.model, scenario.cluster, scenario.training);
      prediction.estimate = evaluator.estimate(*plan);
    } else {
      prediction.error = "no valid choice of the keys written auto fits in memory";
    }
  } catch (const ConfigError& fault) {
    prediction.error = fault.what();
  }
  return prediction;
}

void add_rows(const Run& run, const std::string& source, const costmodel::ConfigPath& path,
              std::vector<ValidationRow>& rows) {
  const Prediction prediction = predict(run, path);
  const auto add = [&](const char* quantity, double measured, double predicted) {
    rows.push_back({run.id,
                    source,
                    quantity,
                    measured,
                    predicted,
                    {},
                    prediction.error,
                    prediction.facts,
                    run.contradicted});
  };
  const Estimate* e = prediction.estimate ? &*prediction.estimate : nullptr;
  if (run.measured.iteration) {
    add("iteration_s", *run.measured.iteration, e != nullptr ? e->iteration.value : 0);
    if (e != nullptr) rows.back().interval = e->interval;
  }
  if (run.measured.peak_memory)
    add("peak_memory_bytes", *run.measured.peak_memory, e != nullptr ? e->reported_peak.value : 0);
  // A run that was timed ran: it fitted.
  if (run.measured.fits || run.measured.iteration) {
    add("fits", run.measured.fits.value_or(true) ? 1 : 0, e != nullptr && e->fits() ? 1 : 0);
  }
}

double percentile(std::vector<double> sorted, double fraction) {
  if (sorted.empty()) return 0;
  std::sort(sorted.begin(), sorted.end());
  const auto at =
      static_cast<std::size_t>(std::ceil(fraction * static_cast<double>(sorted.size())));
  return sorted[std::min(sorted.size() - 1, at > 0 ? at - 1 : 0)];
}

}  // namespace

ErrorFigures figures_of(const std::vector<ValidationRow>& rows, const std::string& quantity) {
  ErrorFigures f;
  std::vector<double> apes;
  int inside = 0;
  for (const auto& row : rows) {
    if (row.quantity != quantity || !row.counts()) continue;
    apes.push_back(std::abs(row.error_pct()));
    f.mape += apes.back();
    f.bias += row.error_pct();
    f.max_ape = std::max(f.max_ape, apes.back());
    inside += row.inside() ? 1 : 0;
  }
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

// The same figures for each value of a fact, over predicted iteration times.
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
    if (memory.rows > 0) summary.memory_by_source[source] = memory;
    const FitFigures fits = verdicts_of(own);
    if (fits.fitted + fits.did_not_fit > 0) summary.fits_by_source[source] = fits;
    if (timed.rows == 0) continue;
    summary.macro_mape += timed.mape;
    ++timed_sources;
  }
  if (timed_sources > 0) summary.macro_mape /= timed_sources;
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
  summary.memory = figures_of(rows, "peak_memory_bytes");
  summary.fits = verdicts_of(rows);
  for (const auto& row : rows) {
    if (row.quantity != "fits") continue;  // one a run
    summary.unpredicted += row.error.empty() ? 0 : 1;
    summary.contradicted += row.contradicted.empty() ? 0 : 1;
  }
  summary.fitted_called_too_large = summary.fits.called_too_large;
  summary.too_large_called_fitting = summary.fits.did_not_fit - summary.fits.recognised;
  return summary;
}

std::vector<EvidenceRun> read_evidence_runs(const std::vector<std::string>& operands) {
  std::vector<EvidenceRun> all;
  for (const auto& file : evidence_files(operands, nullptr)) {
    const std::string source = fs::path(file).stem().string();
    for (Run& run : read_evidence(file)) {
      all.push_back({source, std::move(run.id), std::move(run.scenario), run.measured,
                     std::move(run.contradicted)});
    }
  }
  return all;
}

std::optional<double> predicted_iteration(const EvidenceRun& run,
                                          const costmodel::ConfigPath& path) {
  try {
    Scenario scenario = read_scenario(run.scenario, run.id, path);
    take_defaults(scenario);
    const auto plan = settled_plan(scenario);
    if (!plan) return {};
    return costmodel::Evaluator(scenario.model, scenario.cluster, scenario.training)
        .iteration_time(*plan)
        .value;
  } catch (const ConfigError&) {
    return {};
  }
}

std::vector<ValidationRow> validate(const std::vector<std::string>& operands,
                                    const costmodel::ConfigPath& path,
                                    std::vector<std::string>* left_out) {
  std::vector<ValidationRow> rows;
  for (const auto& file : evidence_files(operands, left_out)) {
    const std::string source = fs::path(file).stem().string();
    for (const Run& run : read_evidence(file)) add_rows(run, source, path, rows);
  }
  return rows;
}

}  // namespace planner
