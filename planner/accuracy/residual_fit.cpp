#include "planner/accuracy/residual_fit.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "planner/accuracy/rank_agreement.hpp"

namespace planner {

using costmodel::Residuals;
using costmodel::ResidualTable;

namespace {

constexpr double normal_p10_to_p90 = 2.563;
constexpr int few_runs = 5;  // fewer tell nothing about a spread

double residual(const ValidationRow& row) { return std::log(row.measured / row.predicted); }

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values) sum += v;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

struct Group {
  std::vector<double> residuals;
  std::set<std::string> sources;
  void add(const ValidationRow& row) {
    residuals.push_back(residual(row));
    sources.insert(row.source);
  }
};

Residuals summed_up(const Group& group) {
  Residuals r;
  r.runs = static_cast<int>(group.residuals.size());
  r.sources = static_cast<int>(group.sources.size());
  r.mean = mean_of(group.residuals);
  r.spread = robust_spread(group.residuals);
  return r;
}

// Each (source, stack, device) counts once, so that a source with many runs does not dominate.
void pool(const std::map<std::string, Group>& cells, ResidualTable& table) {
  std::vector<double> means, variances;
  std::set<std::string> sources;
  for (const auto& [name, cell] : cells) {
    means.push_back(mean_of(cell.residuals));
    sources.insert(cell.sources.begin(), cell.sources.end());
    table.all.runs += static_cast<int>(cell.residuals.size());
    if (cell.residuals.size() < few_runs) continue;
    variances.push_back(std::pow(robust_spread(cell.residuals), 2));
  }
  const costmodel::ErrorBand unknown;
  table.all.sources = static_cast<int>(sources.size());
  table.all.mean = mean_of(means);
  // With too few runs overall, the default that applies without a table.
  const double assumed = std::log(unknown.high / unknown.low) / (2 * 1.645);
  table.all.spread = variances.empty() ? assumed : std::sqrt(mean_of(variances));
  table.between = means.size() > 1 ? robust_spread(means) : assumed;
}

}  // namespace

double quantile(std::vector<double> values, double fraction) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const double at = fraction * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (values[above] - values[below]) * (at - static_cast<double>(below));
}

double robust_spread(const std::vector<double>& values) {
  return (quantile(values, 0.9) - quantile(values, 0.1)) / normal_p10_to_p90;
}

std::optional<ResidualTable> fit_residuals(const std::vector<ValidationRow>& rows,
                                           const std::string& without_source) {
  std::map<std::string, Group> cells, stacks, devices;
  std::map<std::pair<std::string, std::string>, Group> kinds;
  std::vector<ValidationRow> kept;
  for (const auto& row : rows) {
    if (!row.predicted_time() || row.source == without_source) continue;
    const RunFacts& f = row.facts;
    cells[row.source + "|" + f.stack + "|" + f.device].add(row);
    stacks[f.stack].add(row);
    devices[f.device].add(row);
    kinds[{f.stack, f.device}].add(row);
    kept.push_back(row);
  }
  if (kept.empty()) return {};
  ResidualTable table;
  pool(cells, table);
  for (const auto& [name, group] : stacks) table.stacks[name] = summed_up(group);
  for (const auto& [name, group] : devices) table.devices[name] = summed_up(group);
  for (const auto& [kind, group] : kinds) {
    Residuals& r = table.kinds[kind] = summed_up(group);
    if (r.runs >= costmodel::many_runs)
      r.range = {quantile(group.residuals, 0.05), quantile(group.residuals, 0.95)};
  }
  table.pair_spread = pair_spread_of(kept).value_or(costmodel::ErrorBand{}.pair_spread);
  return table;
}

std::map<std::string, double> left_out_coverage(const std::vector<ValidationRow>& rows) {
  std::map<std::string, std::pair<int, int>> counts;  // inside, all
  for (const auto& row : rows) {
    if (row.predicted_time()) counts[row.source] = {0, 0};
  }
  if (counts.size() < 2) return {};
  std::pair<int, int> total{0, 0};
  for (auto& [source, count] : counts) {
    const auto others = fit_residuals(rows, source);
    for (const auto& row : rows) {
      if (!row.predicted_time() || row.source != source) continue;
      const auto band = band_of(*others, row.facts.stack, row.facts.device);
      const double factor = row.measured / row.predicted;
      count.first += factor >= band.low && factor <= band.high ? 1 : 0;
      ++count.second;
    }
    total.first += count.first;
    total.second += count.second;
  }
  std::map<std::string, double> coverage{{"", 100.0 * total.first / total.second}};
  for (const auto& [source, count] : counts) coverage[source] = 100.0 * count.first / count.second;
  return coverage;
}

}  // namespace planner
