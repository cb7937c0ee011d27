#include "planner/accuracy/refit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>
#include <set>
#include <utility>

#include "costmodel/base/escape.hpp"
#include "costmodel/base/parallel_for.hpp"
#include "planner/accuracy/robust_step.hpp"
#include "planner/accuracy/validation.hpp"

namespace planner {

using namespace costmodel;

namespace {

using Indices = std::vector<std::size_t>;
using Values = std::vector<double>;  // of constants

// Predicts runs on several threads, each of which has its own copy of the loaded configurations.
class Pricing {
 public:
  Pricing(const std::vector<EvidenceRun>& runs, const std::vector<FittedConstant>& constants,
          const ConfigPath& path, int threads)
      : runs_(runs) {
    for (int t = 0; t < std::max(1, threads); ++t) {
      ConfigPath own = path;
      if (t > 0) {
        own.loaded = std::make_shared<std::map<std::string, costmodel::Value>>(*path.loaded);
        own.residuals = nullptr;
        own.left_out = std::make_shared<std::vector<std::string>>();
      }
      lanes_.push_back({own, ConstantPlaces(constants, own), Values(constants.size(), NAN)});
    }
  }

  // Sets `errors` of the runs named.
  void price(const Values& values, const Indices& runs, std::vector<double>& errors) {
    std::atomic<std::size_t> next{0};
    on_lanes([&](Lane& lane) {
      lane.set(values);
      for (std::size_t k; (k = next++) < runs.size();) errors[runs[k]] = error_of(lane, runs[k]);
    });
  }

  // Differences of the errors of the runs in `moved` when each constant is nudged, by constant;
  // runs that do not move are left out.
  using Slopes = std::vector<std::vector<std::pair<std::size_t, double>>>;
  Slopes slopes(const Values& values, const Values& nudges, const std::vector<Indices>& moved,
                const std::vector<double>& errors) {
    Slopes slopes(values.size());
    std::atomic<std::size_t> next{0};
    on_lanes([&](Lane& lane) {
      for (std::size_t c; (c = next++) < values.size();) {
        Values nudged = values;
        nudged[c] *= std::exp(nudges[c]);
        lane.set(nudged);
        for (const std::size_t i : moved[c]) {
          const double change = error_of(lane, i) - errors[i];
          if (change != 0 && std::isfinite(change)) slopes[c].emplace_back(i, change / nudges[c]);
        }
      }
    });
    return slopes;
  }

  void leave(const Values& values) { lanes_.front().set(values); }

 private:
  struct Lane {
    ConfigPath path;
    ConstantPlaces places;
    Values set_to;
    void set(const Values& values) {
      for (std::size_t c = 0; c < values.size(); ++c) {
        if (values[c] != set_to[c]) places.set(c, values[c]);
      }
      set_to = values;
    }
  };

  template <class Work>
  void on_lanes(const Work& work) {
    const auto count = lanes_.size();
    costmodel::share_out(count, static_cast<int>(count), [&](std::size_t t) { work(lanes_[t]); });
  }

  double error_of(const Lane& lane, std::size_t i) const {
    const auto predicted = predicted_iteration(runs_[i], lane.path);
    return predicted ? std::log(*predicted / *runs_[i].measured.iteration) : NAN;
  }

  const std::vector<EvidenceRun>& runs_;
  std::vector<Lane> lanes_;
};

// Constants and the errors under them.
struct Point {
  Values values;
  std::vector<double> errors;
};

class Fit {
 public:
  Fit(const std::vector<EvidenceRun>& runs, std::vector<FittedRun> facts,
      const std::vector<FittedConstant>& constants, Pricing& pricing)
      : facts_(std::move(facts)), constants_(constants), pricing_(pricing) {
    all_.resize(runs.size());
    std::iota(all_.begin(), all_.end(), 0);
    at_.errors.assign(runs.size(), NAN);
    for (const auto& c : constants_) at_.values.push_back(c.value);
    pricing_.price(at_.values, all_, at_.errors);
    moved_.assign(constants_.size(), all_);
    set_counted(std::vector<bool>(runs.size(), true));
    find_slopes();
  }

  // Steps until the objective falls no further.
  void to_all_runs() {
    constexpr int steps = 20;
    double reach = 0.2;
    for (int step = 0; step < steps && reach > 0.005; ++step) {
      const double before = objective(at_);
      const Point to = stepped(at_, reach, 0);
      const double gain = before - objective(to);
      if (gain <= 0) {
        reach /= 4;
        continue;
      }
      at_ = to;
      if (gain < least_gain) break;
      find_slopes();
    }
    pricing_.price(at_.values, all_, at_.errors);  // steps price the runs that decide alone
  }

  // The errors of the runs left out by constants fitted to all others.
  void without(const std::vector<bool>& left_out, std::vector<double>& errors) {
    constexpr int steps = 5;
    std::vector<bool> counted = left_out;
    counted.flip();
    set_counted(counted);
    Point at = at_;
    for (std::size_t c = 0; c < constants_.size(); ++c) {
      const bool forgotten = !moved_[c].empty() && !decided(c);
      if (forgotten)
        at.values[c] = std::clamp(constants_[c].prior, constants_[c].low, constants_[c].high);
    }
    double reach = 0.2;
    for (int step = 0; step < steps; ++step) {
      const Point to = stepped(at, reach, unfelt);
      const double gain = objective(at) - objective(to);
      if (gain > 0) at = to;
      if (gain > 0 && gain < least_gain) break;
      if (gain <= 0) reach /= 4;
    }
    Indices out;
    for (const std::size_t i : all_)
      if (left_out[i]) out.push_back(i);
    pricing_.price(at.values, out, errors);
  }

  double objective() const { return objective(at_); }
  const Point& at() const { return at_; }
  int runs_of(std::size_t c) const {
    return static_cast<int>(
        std::ranges::count_if(moved_[c], [&](std::size_t i) { return facts_[i].decides; }));
  }

 private:
  static constexpr double least_gain = 1e-4;  // of the objective: 0.01 % of the time of one source
  static constexpr double unfelt = 2e-4;      // smaller steps of a fold are not taken

  // A source weighs as the fourth root of its runs.
  void set_counted(const std::vector<bool>& counted) {
    std::map<std::string, double> count;
    for (const std::size_t i : all_)
      if (counts(i, counted)) count[facts_[i].source] += 1;
    weights_.assign(all_.size(), 0);
    for (const std::size_t i : all_)
      if (counts(i, counted)) weights_[i] = std::pow(count[facts_[i].source], 0.25 - 1);
  }

  bool counts(std::size_t i, const std::vector<bool>& counted) const {
    return counted[i] && facts_[i].decides && !std::isnan(at_.errors[i]);
  }

  bool decided(std::size_t c) const {
    return std::ranges::any_of(moved_[c], [&](std::size_t i) { return weights_[i] > 0; });
  }

  // A run that can no longer be predicted counts as one that no constant explains.
  double objective(const Point& at) const {
    double total = 0;
    for (const std::size_t i : all_) {
      if (weights_[i] > 0)
        total += weights_[i] * robust_loss(std::isnan(at.errors[i]) ? 1 : at.errors[i]);
    }
    for (std::size_t c = 0; c < constants_.size(); ++c)
      total += prior_loss(std::log(at.values[c] / constants_[c].prior), constants_[c].spread);
    return total;
  }

  void find_slopes() {
    constexpr double nudge = 0.01;
    Values nudges;
    for (std::size_t c = 0; c < constants_.size(); ++c) {
      const bool room = at_.values[c] * std::exp(nudge) <= constants_[c].high;
      nudges.push_back(room ? nudge : -nudge);
    }
    slopes_ = pricing_.slopes(at_.values, nudges, moved_, at_.errors);
    if (!first_) return;
    first_ = false;
    for (std::size_t c = 0; c < constants_.size(); ++c) {
      moved_[c].clear();
      for (const auto& [run, slope] : slopes_[c]) moved_[c].push_back(run);
    }
  }

  Point stepped(const Point& from, double reach, double least) {
    std::vector<StepVariable> variables;
    for (std::size_t c = 0; c < constants_.size(); ++c) {
      const FittedConstant& k = constants_[c];
      const double value = from.values[c];
      const bool free = decided(c);
      variables.push_back({slopes_[c], std::log(value / k.prior), k.spread,
                           free ? std::clamp(std::log(k.low / value), -reach, 0.0) : 0,
                           free ? std::clamp(std::log(k.high / value), 0.0, reach) : 0});
    }
    const auto step = robust_step(from.errors, weights_, variables);
    Point to = from;
    std::set<std::size_t> moved;
    for (std::size_t c = 0; c < step.size(); ++c) {
      if (std::abs(step[c]) <= least) continue;
      to.values[c] =
          std::clamp(from.values[c] * std::exp(step[c]), constants_[c].low, constants_[c].high);
      for (const std::size_t i : moved_[c])
        if (weights_[i] > 0) moved.insert(i);
    }
    pricing_.price(to.values, {moved.begin(), moved.end()}, to.errors);
    return to;
  }

  std::vector<FittedRun> facts_;
  const std::vector<FittedConstant>& constants_;
  Pricing& pricing_;
  Indices all_;
  Point at_;
  std::vector<Indices> moved_;  // runs each constant moves
  Pricing::Slopes slopes_;
  std::vector<double> weights_;  // of runs; 0: left out, or without a prediction
  bool first_ = true;
};

// The runs with a measured time, and what they are grouped by.
std::vector<EvidenceRun> timed_runs(const std::vector<std::string>& operands,
                                    const ConfigPath& path, std::vector<FittedRun>& facts) {
  std::vector<EvidenceRun> timed;
  for (EvidenceRun& run : read_evidence_runs(operands)) {
    if (!run.measured.iteration || !run.contradicted.empty()) continue;
    FittedRun fitted{run.id, run.source, {}, 0, run.decides, {}};
    fitted.errors.fill(NAN);
    try {
      const Scenario scenario = scenario_of(run, path);
      fitted.traits = traits_of(scenario);
      if (with_defaults(scenario).automatic.empty())
        fitted.features = features_of(resolve_plan(scenario));
    } catch (const ConfigError&) {  // told by `validate`
    }
    timed.push_back(std::move(run));
    facts.push_back(fitted);
  }
  return timed;
}

void note(FittedTo to, const std::vector<double>& errors, std::vector<FittedRun>& runs) {
  for (std::size_t i = 0; i < runs.size(); ++i)
    runs[i].errors[static_cast<std::size_t>(to)] = errors[i];
}

// Leaves out the runs of every name in turn; runs without a name stay.
void leave_out(FittedTo to, const char* what, const std::vector<std::string>& names, Fit& fit,
               const RefitRequest& request, std::vector<FittedRun>& runs) {
  std::set<std::string> folds;
  for (std::size_t i = 0; i < runs.size(); ++i)
    if (!std::isnan(runs[i].error(FittedTo::all))) folds.insert(names[i]);
  folds.erase("");
  std::vector<double> errors(runs.size(), NAN);
  for (const auto& fold : folds) {
    if (request.progress) request.progress(fmt::format("leaving out {} {}", what, fold));
    std::vector<bool> out;
    for (const auto& name : names) out.push_back(name == fold);
    fit.without(out, errors);
  }
  note(to, errors, runs);
}

void cross_validate(Fit& fit, const RefitRequest& request, std::vector<FittedRun>& runs) {
  double devices = 0, parameters = 0;
  for (const auto& run : runs) {
    devices = std::max(devices, run.traits.devices);
    parameters = std::max(parameters, run.traits.parameters);
  }
  const auto leave = [&](FittedTo to, const char* what, const auto& name_of) {
    std::vector<std::string> names;
    for (const auto& run : runs) names.push_back(name_of(run));
    leave_out(to, what, names, fit, request, runs);
  };
  using Run = const FittedRun&;
  leave(FittedTo::other_sources, "source", [](Run run) { return run.source; });
  if (request.sources_alone) return;
  leave(FittedTo::other_families, "models", [](Run run) { return run.traits.family; });
  leave(FittedTo::other_devices, "device", [](Run run) { return run.traits.device; });
  leave(FittedTo::other_stacks, "stack", [](Run run) { return run.traits.stack; });
  leave(FittedTo::fewer_devices, "runs on",
        [&](Run run) { return run.traits.devices > devices * most_seen ? "many devices" : ""; });
  leave(FittedTo::smaller_models, "runs of", [&](Run run) {
    return run.traits.parameters > parameters * most_seen ? "large models" : "";
  });
}

double mean_of(const std::map<std::string, double>& values) {
  double sum = 0;
  for (const auto& [name, value] : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

// Mean absolute error by source in per cent, over the runs for which `chosen` holds.
template <class Chosen>
std::map<std::string, double> source_means(const std::vector<FittedRun>& runs, FittedTo to,
                                           const Chosen& chosen) {
  std::map<std::string, std::pair<double, int>> sums;
  for (const auto& run : runs) {
    if (std::isnan(run.error(to)) || !chosen(run)) continue;
    auto& [sum, count] = sums[run.source];
    sum += 100 * std::abs(std::expm1(run.error(to)));
    ++count;
  }
  std::map<std::string, double> means;
  for (const auto& [source, sum] : sums) means[source] = sum.first / sum.second;
  return means;
}

}  // namespace

std::map<std::string, double> RefitResult::by_source(FittedTo to) const {
  return source_means(runs, to, [](const FittedRun&) { return true; });
}

MeanErrors RefitResult::means(FittedTo to) const {
  const auto experts = [](const FittedRun& run) { return run.traits.experts; };
  MeanErrors means{mean_of(by_source(to)), mean_of(source_means(runs, to, std::not_fn(experts))),
                   mean_of(source_means(runs, to, experts)), 0};
  int count = 0;
  for (const auto& run : runs) {
    if (std::isnan(run.error(to)) || !run.traits.experts) continue;
    means.experts_by_run += 100 * std::abs(std::expm1(run.error(to)));
    ++count;
  }
  means.experts_by_run /= std::max(1, count);
  return means;
}

RefitResult refit(const std::vector<std::string>& operands,
                  const std::vector<FittedConstant>& constants, const ConfigPath& path,
                  const RefitRequest& request) {
  RefitResult result;
  const auto runs = timed_runs(operands, path, result.runs);
  result.constants = constants;
  Pricing pricing(runs, constants, path, request.threads);
  if (request.progress) request.progress(fmt::format("fitting {} constants", constants.size()));
  Fit fit(runs, result.runs, constants, pricing);
  note(FittedTo::configured, fit.at().errors, result.runs);
  result.objective_before = fit.objective();
  fit.to_all_runs();
  result.objective = fit.objective();
  note(FittedTo::all, fit.at().errors, result.runs);
  for (std::size_t c = 0; c < constants.size(); ++c) {
    result.constants[c].value = fit.at().values[c];
    result.constants[c].runs = fit.runs_of(c);
  }
  result.cross_validated = request.cross_validate;
  if (request.cross_validate) cross_validate(fit, request, result.runs);
  pricing.leave(fit.at().values);
  return result;
}

std::string to_string(const RefitResult& r) {
  std::string text;
  static constexpr std::array<const char*, 6> titles{"configured", "fitted",    "no source",
                                                     "no family",  "no device", "no stack"};
  const std::size_t columns = r.cross_validated ? titles.size() : 2;
  const auto row = [&](const std::string& name, const auto& value) {
    text += fmt::format("{:32}", costmodel::printable(name));
    for (std::size_t t = 0; t < columns; ++t)
      text += fmt::format(" {:>10}", value(static_cast<FittedTo>(t)));
    text += '\n';
  };
  const auto title = [](FittedTo to) { return titles[static_cast<std::size_t>(to)]; };
  const auto mean = [&](double MeanErrors::*field) {
    return [&r, field](FittedTo to) {
      const double percent = r.means(to).*field;  // 0: no such run
      return percent > 0 ? fmt::format("{:.2f}", percent) : std::string("-");
    };
  };
  row("mean error %, constants", title);
  row("mean over sources", mean(&MeanErrors::sources));
  row("dense models, over sources", mean(&MeanErrors::dense));
  row("experts, over sources", mean(&MeanErrors::experts));
  row("experts, over runs", mean(&MeanErrors::experts_by_run));
  text += '\n';
  row("source, mean error %", title);
  for (const auto& [source, before] : r.by_source(FittedTo::configured)) {
    row(source, [&, &name = source](FittedTo to) {
      const auto means = r.by_source(to);
      const auto at = means.find(name);
      return at == means.end() ? std::string("-") : fmt::format("{:.2f}", at->second);
    });
  }
  text += fmt::format("\n{:44} {:>12} {:>12} {:>6}\n", "constant", "prior", "fitted", "runs");
  for (const auto& c : r.constants) {
    text += fmt::format("{:44} {:12.5g} {:12.5g} {:6}\n", costmodel::printable(c.name), c.prior,
                        c.value, c.runs);
  }
  return text;
}

}  // namespace planner
