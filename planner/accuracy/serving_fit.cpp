#include "planner/accuracy/serving_fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "costmodel/base/parallel_for.hpp"
#include "planner/accuracy/robust_step.hpp"

namespace planner {

using namespace costmodel;

namespace {

constexpr int most_steps = 3;
constexpr double probe = 0.05;  // of a constant's logarithm, for slopes

// How far a family's and a device's constants lie from those of all, as a part of the spread.
constexpr double family_spread = 0.6, device_spread = 0.6;

// A figure of a run that counts.
struct FittedFigure {
  std::size_t run = 0, figure = 0;
  double weight = 0;
};

bool counts(const ServingRun& run, std::size_t figure) {
  if (run.confidence == "low" || !run.fault.empty() || run.figures[figure].predicted <= 0)
    return false;
  if (run.figures[figure].metric != ServingMetric::e2e) return true;
  return std::ranges::none_of(run.figures, [](const ServingFigure& f) {
    return f.metric == ServingMetric::tpot || f.metric == ServingMetric::throughput;
  });
}

std::vector<FittedFigure> figures_of(const std::vector<ServingRun>& runs) {
  std::vector<FittedFigure> all;
  std::map<std::string, double> in_source;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    for (std::size_t f = 0; f < runs[i].figures.size(); ++f) {
      if (!counts(runs[i], f)) continue;
      all.push_back({i, f, 1});
      ++in_source[runs[i].source];
    }
  }
  for (FittedFigure& f : all)
    f.weight = 1 / in_source[runs[f.run].source] / static_cast<double>(in_source.size());
  return all;
}

// Groups of factors: "shared", families, devices.
struct Group {
  std::string name;
  double part;  // of the spread
  bool holds(const ServingRun& run) const {
    return name == "shared" || name == run.engine() || name == run.device();
  }
};

std::vector<Group> groups_in(const std::vector<ServingRun>& runs) {
  std::set<std::string> families, devices;
  for (const ServingRun& run : runs) {
    families.insert(run.engine());
    devices.insert(run.device());
  }
  std::vector<Group> groups{{"shared", 1}};
  for (const auto& name : families) groups.push_back({name, family_spread});
  for (const auto& name : devices) groups.push_back({name, device_spread});
  return groups;
}

void predict_all(std::vector<ServingRun>& runs, const ServingFit& fit, int threads) {
  costmodel::share_out(runs.size(), threads, [&](std::size_t i) {
    costmodel::EngineSpec& engine = runs[i].scenario.serving.engine;
    engine.constants = fitted(engine.prior, fit, engine.family, runs[i].device());
    predict(runs[i]);
  });
}

// slopes[run][constant][figure]: d log(predicted) / d log(constant), of the closed form, which
// follows the simulation closely enough for steps; errors are always the simulation's.
using Slopes = std::vector<std::array<std::vector<double>, constant_count>>;

Slopes slopes_at(const std::vector<ServingRun>& runs, int threads) {
  Slopes slopes(runs.size());
  costmodel::share_out(runs.size(), threads, [&](std::size_t i) {
    ServingRun here = runs[i];
    predict_in_closed_form(here);
    for (std::size_t c = 0; c < constant_count; ++c) {
      ServingRun probed = runs[i];
      auto& constants = probed.scenario.serving.engine.constants;
      constant_rows()[c].of(constants) *= std::exp(probe);
      predict_in_closed_form(probed);
      for (std::size_t f = 0; f < probed.figures.size(); ++f) {
        const double now = here.figures[f].predicted, then = probed.figures[f].predicted;
        slopes[i][c].push_back(now > 0 && then > 0 ? std::log(then / now) / probe : 0);
      }
    }
  });
  return slopes;
}

// One step of all groups' factors.
void improve(const std::vector<ServingRun>& runs, const Slopes& slopes,
             const std::vector<FittedFigure>& figures, const std::vector<Group>& groups,
             ServingFit& fit) {
  std::vector<double> errors, weights;
  for (const FittedFigure& f : figures) {
    errors.push_back(runs[f.run].figures[f.figure].log_error());
    weights.push_back(f.weight);
  }
  std::vector<StepVariable> variables;
  for (const Group& group : groups) {
    auto& factors = fit.factors.try_emplace(group.name).first->second;
    for (std::size_t c = 0; c < constant_count; ++c) {
      if (factors[c] <= 0) factors[c] = 1;
      StepVariable v;
      v.from_prior = std::log(factors[c]);
      v.spread = constant_rows()[c].spread * group.part;
      v.low = -1.5 * v.spread;
      v.high = 1.5 * v.spread;
      for (std::size_t k = 0; k < figures.size(); ++k) {
        if (!group.holds(runs[figures[k].run])) continue;
        const double slope = slopes[figures[k].run][c][figures[k].figure];
        if (slope != 0) v.slopes.emplace_back(k, slope);
      }
      variables.push_back(std::move(v));
    }
  }
  const std::vector<double> step = robust_step(errors, weights, variables);
  std::size_t at = 0;
  for (const Group& group : groups) {
    for (double& factor : fit.factors[group.name]) factor *= std::exp(step[at++]);
  }
}

ServingFit stepped(std::vector<ServingRun>& runs, int threads, int steps) {
  ServingFit fit;
  const std::vector<Group> groups = groups_in(runs);
  predict_all(runs, fit, threads);
  for (int i = 0; i < steps; ++i) {
    improve(runs, slopes_at(runs, threads), figures_of(runs), groups, fit);
    predict_all(runs, fit, threads);
  }
  return fit;
}

}  // namespace

ServingFit fit_serving(std::vector<ServingRun>& runs, int threads) {
  return stepped(runs, threads, most_steps);
}

void leave_one_source_out(std::vector<ServingRun>& runs, int threads) {
  std::set<std::string> sources;
  for (const ServingRun& run : runs) sources.insert(run.source);
  predict_all(runs, {}, threads);
  const Slopes all_slopes = slopes_at(runs, threads);
  const std::vector<Group> groups = groups_in(runs);
  std::vector<ServingRun> result = runs;
  for (const std::string& source : sources) {
    std::vector<ServingRun> others, left;
    Slopes slopes;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      if (runs[i].source == source) {
        left.push_back(runs[i]);
      } else {
        others.push_back(runs[i]);
        slopes.push_back(all_slopes[i]);
      }
    }
    ServingFit fit;
    improve(others, slopes, figures_of(others), groups, fit);
    predict_all(left, fit, threads);
    std::size_t at = 0;
    for (ServingRun& run : result) {
      if (run.source == source) run = left[at++];
    }
  }
  runs = std::move(result);
}

Value fit_value(const ServingFit& fit) {
  const auto number = [](double x) { return scalar_value(fmt::format("{:.4g}", x)); };
  Value factors, intervals, root;
  for (const auto& [name, values] : fit.factors) {
    Value map;
    for (std::size_t i = 0; i < constant_count; ++i) {
      if (values[i] != 1) map.set(std::string(constant_rows()[i].name), number(values[i]));
    }
    factors.set(name, map);
  }
  for (std::size_t i = 0; i < interval_names.size(); ++i) {
    Value map;
    map.set("low", number(fit.intervals[i][0]));
    map.set("high", number(fit.intervals[i][1]));
    intervals.set(std::string(interval_names[i]), map);
  }
  root.set("factors", factors);
  root.set("intervals", intervals);
  root.set("basis", scalar_value(fit.basis));
  return root;
}

}  // namespace planner
