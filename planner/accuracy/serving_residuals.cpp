#include "planner/accuracy/serving_residuals.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <set>

namespace planner {

using Intervals = std::array<std::array<double, 2>, 4>;

namespace {

bool counts(const ServingRun& run, const std::string& without) {
  return run.source != without && run.confidence != "low";
}

// Of one metric.
struct Spread {
  double mean = 0;     // of the sources' means
  double within = 0;   // mean variance within a source
  double squares = 0;  // of the sources' means about their mean
  std::size_t sources = 0;
  std::array<double, 2> tails{};  // 5th and 95th percentile, each source with the same weight
  double variance() const { return squares / (static_cast<double>(sources) - 1); }
};

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values) sum += v;
  return sum / static_cast<double>(values.size());
}

double squares_of(const std::vector<double>& values) {
  const double mean = mean_of(values);
  double sum = 0;
  for (const double v : values) sum += (v - mean) * (v - mean);
  return sum;
}

using ErrorsBySource = std::map<std::string, std::vector<double>>;

std::array<double, 2> tails_of(const ErrorsBySource& by_source) {
  std::vector<std::pair<double, double>> all;  // value, weight
  for (const auto& [source, values] : by_source) {
    const double weight = 1 / static_cast<double>(values.size() * by_source.size());
    for (const double v : values) all.emplace_back(v, weight);
  }
  std::ranges::sort(all);
  const auto at = [&](double share) {
    double passed = 0;
    for (const auto& [value, weight] : all) {
      passed += weight;
      if (passed >= share) return value;
    }
    return all.back().first;
  };
  return {at(0.05), at(0.95)};
}

Spread spread_of(const std::vector<ServingRun>& runs, ServingMetric metric,
                 const std::string& without) {
  ErrorsBySource by_source;
  for (const ServingRun& run : runs) {
    if (!counts(run, without)) continue;
    for (const ServingFigure& f : run.figures) {
      if (f.metric == metric && f.predicted > 0) by_source[run.source].push_back(-f.log_error());
    }
  }
  Spread spread;
  if (by_source.empty()) return spread;
  std::vector<double> means, variances;
  for (const auto& [source, errors] : by_source) {
    means.push_back(mean_of(errors));
    variances.push_back(squares_of(errors) / static_cast<double>(errors.size()));
  }
  spread.sources = means.size();
  spread.mean = mean_of(means);
  spread.within = mean_of(variances);
  spread.squares = squares_of(means);
  spread.tails = tails_of(by_source);
  return spread;
}

// The variance between sources that one more source is taken to bring: the mean of the metrics
// that have several.
double usual_variance(const std::array<Spread, 4>& spreads) {
  std::vector<double> known;
  for (const Spread& s : spreads) {
    if (s.sources > 1) known.push_back(s.variance());
  }
  return known.empty() ? 0 : mean_of(known);
}

std::array<double, 2> interval_of(const Spread& s, double usual) {
  const auto sources = static_cast<double>(s.sources);
  const double between = (s.squares + usual) / sources;
  const double half = student_95(s.sources) * std::sqrt(between * (1 + 1 / sources) + s.within);
  // Errors have longer tails than the normal distribution: never less than what was seen.
  const double low = std::min(s.mean - half, s.tails[0]);
  const double high = std::max(s.mean + half, s.tails[1]);
  return {std::min(1.0, std::exp(low)), std::max(1.0, std::exp(high))};
}

}  // namespace

double student_95(std::size_t degrees) {
  constexpr double z = 1.6448536269514722;  // of the normal distribution
  if (degrees <= 1) return std::tan(0.45 * std::numbers::pi);
  if (degrees == 2) return 0.9 * std::sqrt(2 / (1 - 0.9 * 0.9));
  // Abramowitz and Stegun 1964, 26.7.5.
  const auto n = static_cast<double>(degrees);
  const double z3 = z * z * z, z5 = z3 * z * z, z7 = z5 * z * z;
  return z + (z3 + z) / (4 * n) + (5 * z5 + 16 * z3 + 3 * z) / (96 * n * n) +
         (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / (384 * n * n * n);
}

Intervals serving_intervals(const std::vector<ServingRun>& runs, const std::string& without,
                            const Intervals& otherwise) {
  std::array<Spread, 4> spreads;
  for (std::size_t m = 0; m < spreads.size(); ++m)
    spreads[m] = spread_of(runs, static_cast<ServingMetric>(m), without);
  const double usual = usual_variance(spreads);
  Intervals all = otherwise;
  for (std::size_t m = 0; m < all.size(); ++m) {
    if (spreads[m].sources > 0) all[m] = interval_of(spreads[m], usual);
  }
  return all;
}

void set_intervals(const std::vector<ServingRun>& runs, costmodel::ServingFit& fit) {
  std::set<std::string> sources;
  std::size_t figures = 0;
  for (const ServingRun& run : runs) {
    if (!counts(run, "") || !run.fault.empty()) continue;
    sources.insert(run.source);
    figures += run.figures.size();
  }
  fit.intervals = serving_intervals(runs, "", fit.intervals);
  fit.basis = fmt::format(
      "interval: {} published measurements of {} sources, each predicted by constants fitted to "
      "the others; Student's t of the spread between sources",
      figures, sources.size());
}

double covered(const std::vector<ServingRun>& runs, ServingMetric metric) {
  std::map<std::string, std::array<double, 2>> intervals;
  std::size_t inside = 0, all = 0;
  for (const ServingRun& run : runs) {
    if (!counts(run, "")) continue;
    for (const ServingFigure& f : run.figures) {
      if (f.metric != metric || f.predicted <= 0) continue;
      auto at = intervals.find(run.source);
      if (at == intervals.end()) {
        const Intervals own =
            serving_intervals(runs, run.source, {{{1, 1}, {1, 1}, {1, 1}, {1, 1}}});
        at = intervals.emplace(run.source, own[static_cast<std::size_t>(metric)]).first;
      }
      const double ratio = f.measured / f.predicted;
      ++all;
      inside += ratio >= at->second[0] && ratio <= at->second[1] ? 1 : 0;
    }
  }
  return all == 0 ? 0 : static_cast<double>(inside) / static_cast<double>(all);
}

}  // namespace planner
