#include "planner/accuracy/own_runs.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "costmodel/base/escape.hpp"
#include "costmodel/base/unit_text.hpp"
#include "planner/accuracy/runs_known.hpp"
#include "planner/report/report_tables.hpp"
#include "planner/report/table.hpp"

namespace planner {

using namespace costmodel;

double OwnRun::residual() const { return std::log(measured.value / predicted.value); }

namespace {

// Runs that keep to the usual interval around their factor widen it on no side.
void keep_to_usual(const std::vector<OwnRun>& runs, double factor, OwnRuns& measured) {
  double low = 1, high = 1;
  for (const OwnRun& run : runs) {
    low = std::min(low, run.usual.low);
    high = std::max(high, run.usual.high);
  }
  const auto within = [&](const OwnRun& run) {
    const double own = std::exp(run.residual() - factor);
    return low <= own && own <= high;
  };
  if (!std::ranges::all_of(runs, within)) return;
  measured.low = std::max(measured.low, low);
  measured.high = std::min(measured.high, high);
}

}  // namespace

OwnRunsFit fit_own_runs(std::vector<OwnRun> runs, const std::string& stack,
                        const costmodel::SiteSpread& published) {
  OwnRunsFit own;
  SiteRuns residuals;
  for (const OwnRun& run : runs) residuals.push_back({run.residual(), {1}});
  own.fit = fit_site(site_prior(published), residuals);
  const double factor = own.fit.factor;
  own.measured = {static_cast<int>(runs.size()), stack, std::exp(factor),
                  std::min(1.0, std::exp(own.fit.next.low - factor)),
                  std::max(1.0, std::exp(own.fit.next.high - factor))};
  keep_to_usual(runs, factor, own.measured);
  own.runs = std::move(runs);
  return own;
}

namespace {

// As the reader takes them (costmodel/machine/traced_run).
Value traces_value(const std::vector<costmodel::TracedRun>& traces) {
  const auto text = [](const auto& x) { return costmodel::scalar_value(fmt::format("{}", x)); };
  Value list;
  list.kind = Value::Kind::sequence;
  for (const costmodel::TracedRun& trace : traces) {
    Value map, kinds, noise;
    for (Value* each : {&map, &kinds, &noise}) each->kind = Value::Kind::map;
    map.set("hidden", text(trace.shape.hidden));
    if (trace.shape.head_dim > 0) map.set("head_dim", text(trace.shape.head_dim));
    map.set("layers", text(trace.shape.layers));
    map.set("global_batch", text(trace.shape.global_batch));
    map.set("sequence", text(trace.shape.sequence));
    map.set("compiled", text(trace.shape.compiled));
    map.set("experts", text(trace.shape.experts));
    for (std::size_t kind = 0; kind < costmodel::kernel_kind_count; ++kind) {
      const std::string key(costmodel::kernel_kind_keys[kind]);
      kinds.set(key, costmodel::scalar_value(fmt::format("{:.4f}", trace.kinds[kind])));
      noise.set(key, costmodel::scalar_value(fmt::format("{:.3g}", trace.noise[kind])));
    }
    map.set("kinds", kinds);
    map.set("noise", noise);
    list.items.push_back(std::move(map));
  }
  return list;
}

}  // namespace

Value own_cluster(const Value& cluster, const OwnRunsFit& fit,
                  const costmodel::SiteSpread& published) {
  Value file;
  file.kind = Value::Kind::map;
  if (cluster.is_map()) {
    const bool based = cluster.find("base") != nullptr;
    for (const auto& entry : cluster.entries) {
      const bool dropped = entry.key == "measured" || (based && entry.key == "devices");
      if (!dropped) file.set(entry.key, entry.value);
    }
  } else {
    file.set("base", cluster);
  }
  const auto number = [](double x) { return costmodel::scalar_value(fmt::format("{:.4f}", x)); };
  std::vector<std::string> logs;
  for (const OwnRun& run : fit.runs) {
    logs.push_back(fmt::format("{} ({} of {} iteration{})", run.log,
                               fit.measured.traces.empty() ? "median" : "mean", run.iterations,
                               run.iterations == 1 ? "" : "s"));
  }
  Value measured;
  measured.kind = Value::Kind::map;
  measured.set("stack", costmodel::scalar_value(fit.measured.stack));
  measured.set("runs", costmodel::scalar_value(fmt::format("{}", fit.measured.runs)));
  measured.set("time_factor", number(fit.measured.time_factor));
  measured.set("low", number(fit.measured.low));
  measured.set("high", number(fit.measured.high));
  if (fit.measured.kernel_launch.value > 0) {
    measured.set("kernel_s",
                 costmodel::scalar_value(fmt::format("{:.4g}", fit.measured.kernel_launch.value)));
  }
  if (!fit.measured.traces.empty()) measured.set("traces", traces_value(fit.measured.traces));
  Value source = costmodel::scalar_value(
      fmt::format("shardplan calibrate {}: {}; prior: {} published sources",
                  fit.measured.traces.empty() ? "--from-log" : "--from-trace",
                  fmt::join(logs, ", "), published.sources));
  source.quoted = true;
  measured.set("source", source);
  file.set("measured", measured);
  return file;
}

namespace {

Table runs_table(const OwnRunsFit& own) {
  Table t{{left("log"), "iterations", "measured", "predicted", "off by"}};
  const bool several = own.runs.size() > 1;
  if (several) t.columns.insert(t.columns.end(), {"by the others", "off by"});
  for (std::size_t i = 0; i < own.runs.size(); ++i) {
    const OwnRun& run = own.runs[i];
    std::vector<std::string> row{costmodel::printable(run.log), fmt::format("{}", run.iterations),
                                 format_seconds(run.measured), format_seconds(run.predicted),
                                 signed_percent(run.predicted / run.measured)};
    if (several) {
      const costmodel::Seconds then = run.predicted * std::exp(own.fit.by_others[i]);
      row.insert(row.end(), {format_seconds(then), signed_percent(then / run.measured)});
    }
    t.rows.push_back(std::move(row));
  }
  return t;
}

// Whether the runs gain from one another, and what follows.
std::string gain_text(const OwnRunsFit& own) {
  const SiteFit& fit = own.fit;
  const double before = 100 * fit.before, after = 100 * fit.after;
  if (own.runs.size() < 2) {
    return "One run: nothing to hold it against, so most of what it is off by is taken for its "
           "own. "
           "Give two or more.\n";
  }
  if (fit.refused) {
    return fmt::format(
        "No factor is fitted: each run predicted by the others would be off by {:.1f} % in the "
        "mean, not {:.1f} %.\nThe predictions stay as they are; the interval is what the runs "
        "earn.\n",
        after, before);
  }
  return fmt::format(
      "Each run predicted by the others is off by {:.1f} % in the mean, and by {:.1f} % without "
      "any.\n",
      after, before);
}

}  // namespace

std::string to_string(const OwnRunsFit& own, int sources, std::size_t columns) {
  const costmodel::OwnRuns& m = own.measured;
  double usual = 0;
  for (const OwnRun& run : own.runs)
    usual += std::log(run.usual.high / run.usual.low) / static_cast<double>(own.runs.size());
  const double width = std::log(m.high / m.low);
  const costmodel::ErrorBand& first = own.runs.front().usual;
  std::string text = fmt::format("{} run{} by {}\n\n", m.runs, m.runs == 1 ? "" : "s",
                                 costmodel::printable(m.stack));
  text += to_text(runs_table(own), 2, columns) + "\n" + gain_text(own);
  text += fmt::format("Time factor {:.3f}, held by a prior of {} published sources.\n",
                      m.time_factor, sources);
  const double off = 100 * std::abs(1 - width / usual);
  text += fmt::format(
      "90 % interval of a prediction: {:.2f} to {:.2f} of it; by published runs alone {:.2f} to "
      "{:.2f}: {}.\n",
      m.low, m.high, first.low, first.high,
      off < 1 ? "as wide" : fmt::format("{:.0f} % {}", off, width < usual ? "narrower" : "wider"));
  return text;
}

}  // namespace planner
