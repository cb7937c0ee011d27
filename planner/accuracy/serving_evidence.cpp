#include "planner/accuracy/serving_evidence.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "costmodel/base/input_file.hpp"
#include "costmodel/base/path.hpp"
#include "costmodel/config/map_reader.hpp"
#include "costmodel/serving/serving_reader.hpp"
#include "planner/accuracy/evidence.hpp"

namespace planner {

using costmodel::ConfigError;
using costmodel::Dimension;
using costmodel::MapReader;
using costmodel::Value;

namespace {

// Of a rate of requests or of all tokens the rate of output tokens follows, for the lengths are
// known.
std::vector<ServingFigure> read_figures(const Value& map, const costmodel::ServingSpec& serving) {
  MapReader reader(map, "measured");
  const auto rate = [&](std::string_view name) {
    return reader.number(name, Dimension::count, 1e-6, 1e12);
  };
  const auto time = [&](std::string_view name) {
    return reader.number(name, Dimension::time, 1e-6, 1e7);
  };
  std::vector<ServingFigure> figures;
  const auto output = rate("output_tokens_per_s"), total = rate("total_tokens_per_s"),
             requests = rate("requests_per_s");
  const double in = serving.input.mean, out = serving.output.mean;
  if (output) {
    figures.push_back({ServingMetric::throughput, *output});
  } else if (total) {
    figures.push_back({ServingMetric::throughput, *total * out / (in + out)});
  } else if (requests) {
    figures.push_back({ServingMetric::throughput, *requests * out});
  }
  if (const auto t = time("tpot_s")) figures.push_back({ServingMetric::tpot, *t});
  if (const auto t = time("ttft_s")) figures.push_back({ServingMetric::ttft, *t});
  if (const auto t = time("e2e_s")) figures.push_back({ServingMetric::e2e, *t});
  reader.finish();
  return figures;
}

ServingRun read_serving_run(const WrittenRun& written, const costmodel::ConfigPath& path) {
  MapReader reader(written.run, "run");
  ServingRun run;
  run.source = written.source;
  run.id = read_text(reader.required("id"), "id");
  run.confidence = reader.text("confidence").value_or("");
  Value scenario;
  scenario.kind = Value::Kind::map;
  scenario.mark = written.run.mark;
  for (const auto* key : {"workload", "model", "cluster", "serving", "plan"}) {
    if (const Value* part = reader.optional(key)) scenario.set(key, *part);
  }
  // A run that was measured had a length that its cache holds, whatever it was.
  if (Value* serving = scenario.find("serving");
      serving != nullptr && serving->is_map() && serving->find("max_model_len") == nullptr) {
    serving->set("max_model_len", costmodel::scalar_value("auto"));
  }
  for (const auto* key : {"reported", "where", "notes"}) reader.optional(key);
  run.scenario = read_serving(scenario, run.id, path);
  run.figures = read_figures(reader.required("measured"), run.scenario.serving);
  reader.finish();
  return run;
}

// Of a run of so many requests its own, though more arrive than are answered; without their number
// latencies are not known then: 0.
double of(const costmodel::ServingEstimate& e, ServingMetric metric) {
  const auto run = e.run.value_or(e);
  const auto known = [](double mean) { return mean == costmodel::without_end ? 0 : mean; };
  switch (metric) {
    case ServingMetric::throughput: return run.output_per_s;
    case ServingMetric::tpot: return run.tpot.mean;
    case ServingMetric::ttft: return known(run.ttft.mean);
    case ServingMetric::e2e: return known(run.e2e.mean);
  }
  return 0;
}

}  // namespace

double ServingFigure::log_error() const { return std::log(predicted / measured); }

bool is_serving_evidence(const std::vector<std::string>& operands) {
  const auto says = [](const std::string& file) {
    const std::string text = costmodel::read_file(file, costmodel::measurement_limits);
    return text.find("workload: inference") != std::string::npos;
  };
  const std::string& first = operands.front();
  if (!costmodel::is_folder(first)) return says(first);
  for (const costmodel::FolderEntry& entry : costmodel::entries_of(first)) {
    if (entry.regular && entry.name.ends_with(".yaml"))
      return says(costmodel::joined_path(first, entry.name));
  }
  return false;
}

std::vector<ServingRun> read_serving_runs(const std::vector<std::string>& operands,
                                          const costmodel::ConfigPath& path) {
  std::vector<ServingRun> runs;
  for (const WrittenRun& written : written_runs(operands))
    runs.push_back(read_serving_run(written, path));
  return runs;
}

namespace {

template <class Estimate>
void predict_by(ServingRun& run, const Estimate& estimate) {
  run.fault.clear();
  try {
    const costmodel::ServingEstimate e = estimate(run.scenario);
    if (!e.fits) run.fault = "is predicted not to fit";
    for (ServingFigure& figure : run.figures) figure.predicted = e.fits ? of(e, figure.metric) : 0;
  } catch (const ConfigError& fault) {
    run.fault = fault.what();
  }
}

}  // namespace

void predict(ServingRun& run) {
  predict_by(run, [](const costmodel::ServingScenario& s) { return planned_estimate(s); });
}

void predict_in_closed_form(ServingRun& run) {
  predict_by(run, [](const costmodel::ServingScenario& s) {
    return s.plan.disaggregation ? disaggregated_estimate(s, false)
                                 : quick_estimate(s, sizes_of(s));
  });
}

ServingScore score_of(const std::vector<ServingRun>& runs, ServingMetric metric,
                      const std::function<bool(const ServingRun&)>& counts) {
  std::map<std::string, std::pair<double, double>> by_source;  // sum of errors, number
  std::vector<double> errors;
  ServingScore score;
  for (const ServingRun& run : runs) {
    if (!counts(run)) continue;
    for (const ServingFigure& figure : run.figures) {
      if (figure.metric != metric || figure.predicted <= 0) continue;
      const double error = std::abs(figure.predicted / figure.measured - 1);
      auto& [sum, number] = by_source[run.source];
      sum += error;
      ++number;
      errors.push_back(error);
      score.bias += figure.log_error();
    }
  }
  score.figures = errors.size();
  score.sources = by_source.size();
  if (errors.empty()) return score;
  for (const auto& [source, sum] : by_source) score.mean_error += sum.first / sum.second;
  score.mean_error /= static_cast<double>(by_source.size());
  std::sort(errors.begin(), errors.end());
  score.median_error = errors[errors.size() / 2];
  score.bias /= static_cast<double>(errors.size());
  return score;
}

}  // namespace planner
