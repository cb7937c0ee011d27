#include "calibrate/fit/fit.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "calibrate/fit/robust_fit.hpp"

namespace calibrate {

namespace {

using Chosen = std::vector<std::size_t>;  // indices of knobs

constexpr double smallest_error = 1e-7;  // exact data: no further constant lowers the error

double log_error(const FitTask& task, const std::vector<double>& values, std::size_t point) {
  const Measurement& m = task.points[point];
  return std::log(task.model(values, m) / m.time);
}

std::vector<double> start_values(const FitTask& task) {
  std::vector<double> values;
  for (const auto& knob : task.knobs) values.push_back(knob.start);
  return values;
}

void let_follow(const FitTask& task, std::vector<double>& values) {
  for (std::size_t j = 0; j < values.size(); ++j) {
    const Knob& k = task.knobs[j];
    if (!k.follows) continue;
    const double ratio = k.start / task.knobs[*k.follows].start;
    values[j] = std::clamp(ratio * values[*k.follows], k.least, k.most);
  }
}

// Whether any prediction changes with the knob.
bool has_influence(const FitTask& task, std::size_t knob) {
  const auto base = start_values(task);
  auto moved = base;
  const auto& k = task.knobs[knob];
  moved[knob] = k.start > 0.5 * (k.least + k.most) ? k.least : k.most;
  for (const auto& m : task.points)
    if (task.model(base, m) != task.model(moved, m)) return true;
  return false;
}

// Fits the chosen knobs from several starts, because times of tiers and trees have several local
// minima.
RobustFit fit_chosen(const FitTask& task, const Chosen& chosen) {
  std::optional<RobustFit> best;
  for (const double factor : {1.0, 0.3, 3.0}) {
    std::vector<Bounded> parameters;
    for (const std::size_t j : chosen) {
      const auto& k = task.knobs[j];
      parameters.push_back({k.start * factor, k.least, k.most});
    }
    const auto full = [&](const std::vector<double>& values) {
      auto all = start_values(task);
      for (std::size_t i = 0; i < chosen.size(); ++i) all[chosen[i]] = values[i];
      let_follow(task, all);
      return all;
    };
    RobustFit fit = fit_robustly(parameters, task.points.size(),
                                 [&](const std::vector<double>& values, std::size_t i) {
                                   return log_error(task, full(values), i);
                                 });
    if (best && fit.mean_error >= best->mean_error * (1 - 1e-9)) continue;
    fit.values = full(fit.values);
    best = fit;
  }
  return *best;
}

double information(const RobustFit& fit, std::size_t points, std::size_t knobs) {
  const auto n = static_cast<double>(points);
  return 2 * n * std::log(std::max(fit.mean_error, smallest_error)) +
         static_cast<double>(knobs) * std::log(std::max(n, 2.0));
}

// Adds the knob that lowers the criterion most, as long as one does.
Chosen choose(const FitTask& task) {
  Chosen chosen, others;
  for (std::size_t j = 0; j < task.knobs.size(); ++j) {
    if (!task.knobs[j].follows && has_influence(task, j))
      (task.knobs[j].always ? chosen : others).push_back(j);
  }
  if (chosen.empty()) return chosen;
  const std::size_t n = task.points.size();
  double reached = information(fit_chosen(task, chosen), n, chosen.size());
  while (!others.empty() && chosen.size() + 2 <= n) {
    double best = reached;
    auto which = others.end();
    for (auto j = others.begin(); j != others.end(); ++j) {
      Chosen with = chosen;
      with.push_back(*j);
      const double now = information(fit_chosen(task, with), n, with.size());
      if (now < best) {
        best = now;
        which = j;
      }
    }
    if (which == others.end()) break;
    chosen.push_back(*which);
    others.erase(which);
    reached = best;
  }
  return chosen;
}

ErrorSummary errors(const FitTask& task, const std::vector<double>& values) {
  std::vector<double> signs, sizes;
  for (const auto& m : task.points) {
    signs.push_back(100 * (task.model(values, m) / m.time - 1));
    sizes.push_back(std::abs(signs.back()));
  }
  return {quantile(sizes, 0.5), quantile(sizes, 0.9), quantile(signs, 0.5)};
}

std::string dates(const std::vector<Measurement>& points) {
  std::set<std::string> known;
  for (const auto& m : points)
    if (!m.measured.empty()) known.insert(m.measured);
  if (known.empty()) return "not stated";
  return known.size() == 1 ? *known.begin() : *known.begin() + " to " + *known.rbegin();
}

}  // namespace

std::vector<double> FittedGroup::values() const {
  std::vector<double> all;
  for (const auto& c : constants) all.push_back(c.after);
  return all;
}

bool FittedGroup::any_fitted() const {
  return std::ranges::any_of(constants, [](const auto& c) { return c.fitted && c.written; });
}

FittedGroup fit(const FitTask& task, const FitTask& shipped) {
  FittedGroup group;
  group.what = task.what;
  group.points = task.points.size();
  std::set<std::string> titles;
  for (const auto& m : task.points) titles.insert(m.title);
  group.sources.assign(titles.begin(), titles.end());
  group.measured = dates(task.points);
  const auto before = start_values(task);
  const Chosen chosen = task.points.empty() ? Chosen{} : choose(task);
  const auto after = chosen.empty() ? before : fit_chosen(task, chosen).values;
  for (std::size_t j = 0; j < task.knobs.size(); ++j) {
    const std::size_t leader = task.knobs[j].follows.value_or(j);
    const bool fitted = std::ranges::find(chosen, leader) != chosen.end();
    const auto& knob = task.knobs[j];
    const bool at_bound =
        fitted && (after[j] == knob.most || (after[j] == knob.least && after[j] > 0));
    group.constants.push_back({knob.name, before[j], after[j], fitted, at_bound, knob.written});
  }
  group.before = errors(shipped, start_values(shipped));
  group.after = errors(task, after);
  return group;
}

}  // namespace calibrate
