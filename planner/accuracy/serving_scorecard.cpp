#include "planner/accuracy/serving_scorecard.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "planner/accuracy/serving_residuals.hpp"

namespace planner {

namespace {

constexpr std::array metrics{ServingMetric::throughput, ServingMetric::tpot, ServingMetric::ttft,
                             ServingMetric::e2e};

bool trusted(const ServingRun& run) { return run.confidence != "low"; }

std::string percent_text(double part) { return fmt::format("{:.1f} %", 100 * part); }

std::string name_of_metric(ServingMetric metric) {
  return std::string(serving_metric_names[static_cast<std::size_t>(metric)]);
}

// "11.2 % (8)", empty without figures.
std::string cell(const ServingScore& score) {
  return score.figures == 0 ? ""
                            : fmt::format("{} ({})", percent_text(score.mean_error), score.figures);
}

std::vector<std::string> score_cells(const std::vector<ServingRun>& runs, const std::string& name,
                                     const std::function<bool(const ServingRun&)>& counts) {
  std::vector<std::string> row{name};
  for (const ServingMetric metric : metrics) row.push_back(cell(score_of(runs, metric, counts)));
  return row;
}

// The part of the trusted figures that lies in an interval of measured / predicted.
double within(const std::vector<ServingRun>& runs, ServingMetric metric,
              const std::array<double, 2>& interval) {
  double inside = 0, all = 0;
  for (const ServingRun& run : runs) {
    for (const ServingFigure& f : run.figures) {
      if (!trusted(run) || f.metric != metric || f.predicted <= 0) continue;
      const double ratio = f.measured / f.predicted;
      ++all;
      inside += ratio >= interval[0] && ratio <= interval[1] ? 1 : 0;
    }
  }
  return inside / std::max(1.0, all);
}

}  // namespace

Table serving_metric_table(const std::vector<ServingRun>& runs, const costmodel::ServingFit& fit) {
  Table table{{left("metric"), "sources", "figures", "mean error", "median", "bias", "interval",
               "inside, others' interval"}};
  for (const ServingMetric metric : metrics) {
    const ServingScore score = score_of(runs, metric, trusted);
    if (score.figures == 0) continue;
    const auto& interval = fit.intervals[static_cast<std::size_t>(metric)];
    const std::string inside = score.sources > 1
                                   ? fmt::format("{:.0f} %", 100 * covered(runs, metric))
                                   : fmt::format("no others; {:.0f} % in the one in use",
                                                 100 * within(runs, metric, interval));
    table.rows.push_back({name_of_metric(metric), std::to_string(score.sources),
                          std::to_string(score.figures), percent_text(score.mean_error),
                          percent_text(score.median_error),
                          fmt::format("{:+.1f} %", 100 * std::expm1(score.bias)),
                          fmt::format("{:.2f} to {:.2f}", interval[0], interval[1]), inside});
  }
  return table;
}

Table serving_source_table(const std::vector<ServingRun>& runs) {
  Table table{{left("source")}};
  for (const ServingMetric metric : metrics) table.columns.push_back({name_of_metric(metric)});
  std::set<std::string> sources;
  for (const ServingRun& run : runs) sources.insert(run.source);
  for (const bool low : {false, true}) {
    for (const std::string& source : sources) {
      const auto own = [&](const ServingRun& run) {
        return run.source == source && trusted(run) != low;
      };
      auto row = score_cells(runs, low ? source + " (low confidence)" : source, own);
      bool any = false;
      for (std::size_t i = 1; i < row.size(); ++i) any = any || !row[i].empty();
      if (any) table.rows.push_back(std::move(row));
    }
  }
  return table;
}

Table serving_coverage(const std::vector<ServingRun>& runs) {
  std::set<std::string> engines, devices;
  for (const ServingRun& run : runs) {
    engines.insert(run.engine());
    devices.insert(run.device());
  }
  Table table{{left("device")}};
  for (const std::string& engine : engines) table.columns.push_back({engine});
  for (const std::string& device : devices) {
    std::vector<std::string> row{device};
    for (const std::string& engine : engines) {
      row.push_back(cell(score_of(runs, ServingMetric::throughput, [&](const ServingRun& run) {
        return trusted(run) && run.device() == device && run.engine() == engine;
      })));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table serving_run_table(const std::vector<ServingRun>& runs) {
  Table table{{left("source"), left("run"), left("metric"), "predicted", "measured", "error",
               left("confidence")}};
  for (const ServingRun& run : runs) {
    if (!run.fault.empty()) {
      table.rows.push_back(
          {run.source, run.id, "not predicted: " + run.fault, "", "", "", run.confidence});
    }
    for (const ServingFigure& f : run.figures) {
      if (f.predicted <= 0) continue;
      table.rows.push_back({run.source, run.id, name_of_metric(f.metric),
                            fmt::format("{:.4g}", f.predicted), fmt::format("{:.4g}", f.measured),
                            fmt::format("{:+.1f} %", 100 * (f.predicted / f.measured - 1)),
                            run.confidence});
    }
  }
  return table;
}

std::string serving_scorecard(const std::vector<ServingRun>& runs, const costmodel::ServingFit& fit,
                              bool crossed, bool every, const ReportStyle& style) {
  std::size_t faults = 0;
  for (const ServingRun& run : runs) faults += run.fault.empty() ? 0 : 1;
  std::string text = style.markup == Markup::markdown
                         ? "## Predictions against published runs of serving\n\n"
                         : "";
  text +=
      escaped(fmt::format("{} published runs of serving, {} not predicted{}", runs.size(), faults,
                          crossed ? "; each source predicted by constants fitted to the others"
                                  : "; predicted by the constants in use"),
              style);
  text += "\n";
  const bool any = std::ranges::any_of(runs, trusted);
  text +=
      section_title("Errors by metric (mean of the sources' means, without low confidence)", style);
  text += any ? section_table(serving_metric_table(runs, fit), style)
              : bullet("None: every run here is of low confidence.", style);
  text += table_section("Mean error by source (figures)", serving_source_table(runs), style);
  if (any) {
    text += table_section("Covered: output tokens/s by device and engine, mean error (figures)",
                          serving_coverage(runs), style);
  }
  if (every) {
    text += table_section("Runs", serving_run_table(runs), style);
  }
  return text;
}

}  // namespace planner
