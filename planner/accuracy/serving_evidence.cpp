#include "planner/accuracy/serving_evidence.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "costmodel/base/input_file.hpp"
#include "costmodel/base/path.hpp"
#include "costmodel/config/key.hpp"
#include "costmodel/serving/serving_reader.hpp"
#include "planner/accuracy/evidence.hpp"

namespace planner {

using namespace costmodel;

namespace {

namespace key = costmodel::key;

struct MeasuredServing {
  std::optional<double> output, total, requests, tpot, ttft, e2e;
};

const Keys<MeasuredServing>& measured_serving_rows() {
  using M = MeasuredServing;
  static const auto keys = [] {
    const auto row = [](std::string_view name, std::optional<double> M::*field,
                        std::string_view help) {
      const Dimension dimension = name.ends_with("per_s") ? Dimension::count : Dimension::time;
      const double most = dimension == Dimension::time ? 1e7 : 1e12;
      return key::special<M>(
          name, [=] { return costmodel::number_text(dimension, 1e-6, most); }, help,
          [=](MapReader& reader, M& measured) {
            measured.*field = reader.number(name, dimension, 1e-6, most);
          });
    };
    return key::rows<M>(row("output_tokens_per_s", &M::output, "tokens made a second"),
                        row("total_tokens_per_s", &M::total, "the same with those of the prompts"),
                        row("requests_per_s", &M::requests, "requests answered a second"),
                        row("tpot_s", &M::tpot, "mean time of a token after the first"),
                        row("ttft_s", &M::ttft, "mean time to the first token"),
                        row("e2e_s", &M::e2e, "mean time of a request"));
  }();
  return keys;
}

// Of a rate of requests or of all tokens the rate of output tokens follows, for the lengths are
// known.
std::vector<ServingFigure> figures_of(const MeasuredServing& m,
                                      const costmodel::ServingSpec& serving) {
  std::vector<ServingFigure> figures;
  const double in = serving.input.mean, out = serving.output.mean;
  if (m.output) {
    figures.push_back({ServingMetric::throughput, *m.output});
  } else if (m.total) {
    figures.push_back({ServingMetric::throughput, *m.total * out / (in + out)});
  } else if (m.requests) {
    figures.push_back({ServingMetric::throughput, *m.requests * out});
  }
  if (m.tpot) figures.push_back({ServingMetric::tpot, *m.tpot});
  if (m.ttft) figures.push_back({ServingMetric::ttft, *m.ttft});
  if (m.e2e) figures.push_back({ServingMetric::e2e, *m.e2e});
  return figures;
}

struct ReadRun {
  ServingRun run;
  Value scenario;
  MeasuredServing measured;
};

const Keys<ReadRun>& serving_run_rows() {
  static const auto keys = [] {
    auto measured = key::required(key::map<ReadRun>(
        "measured", [](ReadRun& r) -> MeasuredServing& { return r.measured; },
        measured_serving_rows()));
    measured.help = "what was measured";
    auto all = key::rows<ReadRun>(
        key::required(key::text<ReadRun>(
            "id", [](ReadRun& r) -> std::string& { return r.run.id; }, "the run's name")),
        key::text<ReadRun>(
            "confidence", [](ReadRun& r) -> std::string& { return r.run.confidence; },
            "how sure the source is"),
        measured);
    for (const char* part : {"workload", "model", "cluster", "serving", "plan"}) {
      all.push_back(key::special<ReadRun>(part, key::fixed_text("as in a scenario"), "of the run",
                                          [part](MapReader& reader, ReadRun& r) {
                                            if (const Value* value = reader.optional(part))
                                              r.scenario.set(part, *value);
                                          }));
    }
    for (const char* note : {"reported", "where", "notes"})
      all.push_back(key::note<ReadRun>(note, "for people"));
    return all;
  }();
  return keys;
}

ServingRun read_serving_run(const WrittenRun& written, const costmodel::ConfigPath& path) {
  ReadRun read;
  read.scenario.kind = Value::Kind::map;
  read.scenario.mark = written.run.mark;
  costmodel::read_map(written.run, "run", serving_run_rows(), read);
  ServingRun run = std::move(read.run);
  run.source = written.source;
  // A run that was measured had a length that its cache holds, whatever it was.
  if (Value* serving = read.scenario.find("serving");
      serving != nullptr && serving->is_map() && serving->find("max_model_len") == nullptr) {
    serving->set("max_model_len", costmodel::scalar_value("auto"));
  }
  run.scenario = read_serving(read.scenario, run.id, path);
  run.figures = figures_of(read.measured, run.scenario.serving);
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

std::vector<costmodel::KeyText> serving_evidence_keys() {
  return costmodel::described(serving_run_rows(), "evidence.runs[].");
}

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
  std::ranges::sort(errors);
  score.median_error = errors[errors.size() / 2];
  score.bias /= static_cast<double>(errors.size());
  return score;
}

}  // namespace planner
