#include "planner/accuracy/residual_fit.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>

namespace planner {

using namespace costmodel;

namespace {

constexpr double weight_power = 0.9;
constexpr double prior_sources = 2;
constexpr int lineage_sources = 8;

using Weighted = std::vector<std::pair<double, double>>;  // value, weight

struct Band {
  double low = 0, high = 0;
  bool holds(double residual) const { return low <= residual && residual <= high; }
};

// Runs of a source whose traits are the same, and so the width of their intervals.
struct AlikeRuns {
  const RunTraits* traits;
  std::vector<double> residuals;
};

// The residuals of one kind, and which sources measured what.
class Evidence {
 public:
  explicit Evidence(const std::vector<FittedRun>& runs, bool experts) {
    std::map<std::string, int> count;
    for (const auto& run : runs) {
      if (run.traits.experts != experts || std::isnan(run.error(FittedTo::other_sources))) continue;
      runs_.push_back(&run);
      ++count[run.source];
      add(run);
      for (const Trait& trait : listed(run.traits)) measured_[trait].insert(run.source);
      double& devices = devices_[run.source];
      devices = std::max(devices, run.traits.devices);
      double& parameters = parameters_[run.source];
      parameters = std::max(parameters, run.traits.parameters);
    }
    for (const auto& [source, runs_of] : count) {
      sources_.insert(source);
      weight_[source] = std::pow(runs_of, weight_power - 1);
    }
  }

  using Sources = std::set<std::string>;

  const Sources& sources() const { return sources_; }
  const std::vector<const FittedRun*>& runs() const { return runs_; }
  // Of a lineage of stacks; "": of all.
  std::vector<AlikeRuns> runs_of(const std::string& source, const std::string& lineage = "") const {
    std::vector<AlikeRuns> own = alike_.at(source);
    if (!lineage.empty())
      std::erase_if(own, [&](const AlikeRuns& runs) { return runs.traits->lineage != lineage; });
    return own;
  }
  double weight(const std::string& source) const { return weight_.at(source); }

  // Of a run among the sources without those of `without`.
  double width(const Widening& widening, const RunTraits& traits, const Sources& without) const {
    const auto sources = [&](const Trait& trait) {
      const auto at = measured_.find(trait);
      if (at == measured_.end()) return 0;
      return static_cast<int>(
          std::ranges::count_if(at->second, [&](const auto& s) { return !without.contains(s); }));
    };
    return width_of(widening, traits, sources, most(devices_, without), most(parameters_, without));
  }

 private:
  void add(const FittedRun& run) {
    auto& all = alike_[run.source];
    auto at = std::ranges::find_if(
        all, [&](const AlikeRuns& known) { return *known.traits == run.traits; });
    if (at == all.end()) at = all.insert(at, {&run.traits, {}});
    at->residuals.push_back(-run.error(FittedTo::other_sources));
  }

  static double most(const std::map<std::string, double>& by_source, const Sources& without) {
    double most = 0;
    for (const auto& [source, value] : by_source)
      if (!without.contains(source)) most = std::max(most, value);
    return most;
  }

  std::vector<const FittedRun*> runs_;
  Sources sources_;
  std::map<std::string, std::vector<AlikeRuns>> alike_;
  std::map<std::string, double> weight_, devices_, parameters_;
  std::map<Trait, Sources> measured_;
};

// The percentiles of the sources without those of `without`, mixed with `prior`; of a lineage, or
// of all.
Band percentiles(const Evidence& evidence, const Widening& widening, const Band& prior,
                 const Evidence::Sources& without, const std::string& lineage) {
  Weighted standard;
  double sources = 0;
  for (const auto& source : evidence.sources()) {
    if (without.contains(source)) continue;
    Evidence::Sources others = without;
    others.insert(source);
    const auto own = evidence.runs_of(source, lineage);
    sources += own.empty() ? 0 : 1;
    for (const AlikeRuns& runs : own) {
      const double width = evidence.width(widening, *runs.traits, others);
      for (const double r : runs.residuals)
        standard.emplace_back(r / width, evidence.weight(source));
    }
  }
  const auto mixed = [&](double fraction, double of_prior) {
    return (sources * weighted_quantile(standard, fraction) + prior_sources * of_prior) /
           (sources + prior_sources);
  };
  return {std::min(0.0, mixed(0.05, prior.low)), std::max(0.0, mixed(0.95, prior.high))};
}

// Those percentiles, stretched until each source left out in turn is held by the others'.
Band band(const Evidence& evidence, const Widening& widening, const Band& prior,
          const Evidence::Sources& without, const std::string& lineage = "") {
  Weighted needed;
  for (const auto& source : evidence.sources()) {
    if (without.contains(source)) continue;
    Evidence::Sources others = without;
    others.insert(source);
    const Band by_others = percentiles(evidence, widening, prior, others, lineage);
    for (const AlikeRuns& runs : evidence.runs_of(source, lineage)) {
      const double width = evidence.width(widening, *runs.traits, others);
      for (const double residual : runs.residuals) {
        const double r = residual / width;
        needed.emplace_back(std::max(r / by_others.low, r / by_others.high),
                            evidence.weight(source));
      }
    }
  }
  const Band own = percentiles(evidence, widening, prior, without, lineage);
  const double stretch = std::max(1.0, weighted_quantile(needed, 0.9));
  return {own.low * stretch, own.high * stretch};
}

// The mean error over sources, over that of the same runs with only their source left out.
double ratio(const std::vector<FittedRun>& runs, FittedTo to) {
  std::map<std::string, std::array<double, 3>> sums;  // error, usual error, runs
  for (const auto& run : runs) {
    const double error = run.error(to), usual = run.error(FittedTo::other_sources);
    if (std::isnan(error) || std::isnan(usual)) continue;
    auto& sum = sums[run.source];
    sum[0] += std::abs(error);
    sum[1] += std::abs(usual);
    sum[2] += 1;
  }
  double wide = 0, narrow = 0;
  for (const auto& [source, sum] : sums) {
    wide += sum[0] / sum[2];
    narrow += sum[1] / sum[2];
  }
  return narrow > 0 ? std::max(1.0, wide / narrow) : 1;
}

// By the mean of the doublings that lay between the runs left out and the others.
double ratio_of_doubling(const std::vector<FittedRun>& runs, FittedTo to, double RunTraits::*size) {
  double most = 0, doublings = 0;
  int count = 0;
  for (const auto& run : runs) most = std::max(most, run.traits.*size);
  for (const auto& run : runs) {
    if (std::isnan(run.error(to))) continue;
    doublings += std::log2(run.traits.*size / (most * most_seen));
    ++count;
  }
  return count > 0 ? std::pow(ratio(runs, to), count / doublings) : 1;
}

Widening widening_of(const std::vector<FittedRun>& runs) {
  Widening w;
  w.stack = ratio(runs, FittedTo::other_stacks);
  w.device = ratio(runs, FittedTo::other_devices);
  w.model = ratio(runs, FittedTo::other_families);
  w.doubling = std::max(ratio_of_doubling(runs, FittedTo::fewer_devices, &RunTraits::devices),
                        ratio_of_doubling(runs, FittedTo::smaller_models, &RunTraits::parameters));
  return w;
}

KindResiduals counted(const Evidence& evidence) {
  KindResiduals kind;
  std::map<Trait, std::set<std::string>> sources;
  for (const FittedRun* run : evidence.runs()) {
    ++kind.count.runs;
    ++kind.runs[{run->traits.stack, run->traits.device}];
    kind.most_devices = std::max(kind.most_devices, run->traits.devices);
    kind.most_parameters = std::max(kind.most_parameters, run->traits.parameters);
    std::vector<Trait> traits = listed(run->traits);
    for (const auto feature : costmodel::names_of(run->features))
      traits.push_back({TraitGroup::plan, std::string(feature)});
    for (const Trait& trait : traits) {
      ++kind.traits[trait].runs;
      sources[trait].insert(run->source);
    }
  }
  kind.count.sources = static_cast<int>(evidence.sources().size());
  for (const auto& source : evidence.sources()) {
    std::set<std::string> lineages;
    for (const AlikeRuns& runs : evidence.runs_of(source)) {
      const std::string& name = runs.traits->lineage;
      if (name.empty()) continue;
      kind.lineages[name].count.runs += static_cast<int>(runs.residuals.size());
      lineages.insert(name);
    }
    for (const auto& name : lineages) ++kind.lineages[name].count.sources;
  }
  std::erase_if(kind.lineages,
                [](const auto& own) { return own.second.count.sources < lineage_sources; });
  for (const auto& [trait, own] : sources)
    kind.traits[trait].sources = static_cast<int>(own.size());
  return kind;
}

// Runs of a source, and how many of them lie inside.
using Held = std::map<std::string, std::pair<int, int>>;

// Judges each source by the band of the others. `priors`: by source left out; "": none.
void judge(const Evidence& evidence, const Widening& widening,
           const std::map<std::string, Band>& priors, KindResiduals& kind, Held& held) {
  int inside = 0;
  for (const auto& source : evidence.sources()) {
    const auto at = priors.find(source);
    const Band& prior = at != priors.end() ? at->second : priors.at("");
    const Band by_others = band(evidence, widening, prior, {source});
    std::map<std::string, Band> of_lineages;
    for (const auto& [name, own] : kind.lineages)
      of_lineages[name] = band(evidence, widening, by_others, {source}, name);
    for (const AlikeRuns& runs : evidence.runs_of(source)) {
      const double width = evidence.width(widening, *runs.traits, {source});
      const auto lineage = of_lineages.find(runs.traits->lineage);
      const Band& of_run = lineage != of_lineages.end() ? lineage->second : by_others;
      for (const double residual : runs.residuals) {
        const bool holds = of_run.holds(residual / width);
        if (lineage != of_lineages.end())
          kind.lineages[lineage->first].covered += holds ? 100.0 : 0;
        ++held[source].first;
        held[source].second += holds ? 1 : 0;
        inside += holds ? 1 : 0;
      }
    }
  }
  if (kind.count.runs > 0) kind.covered = 100.0 * inside / kind.count.runs;
  for (auto& [name, own] : kind.lineages) own.covered /= own.count.runs;
}

void set_bands(const Evidence& evidence, const Widening& widening, const Band& all,
               KindResiduals& kind) {
  kind.low = all.low;
  kind.high = all.high;
  for (auto& [name, own] : kind.lineages) {
    const Band band_of = band(evidence, widening, all, {}, name);
    own.low = band_of.low;
    own.high = band_of.high;
  }
}

costmodel::UnseenErrors unseen_of(const RefitResult& fitted, const Held& held) {
  costmodel::UnseenErrors unseen;
  unseen.in_sample = fitted.means(FittedTo::configured);
  unseen.source = fitted.means(FittedTo::other_sources);
  unseen.family = fitted.means(FittedTo::other_families);
  unseen.device = fitted.means(FittedTo::other_devices);
  unseen.stack = fitted.means(FittedTo::other_stacks);
  const auto errors = fitted.by_source(FittedTo::other_sources);
  for (const auto& [source, counts] : held)
    unseen.by_source[source] = {errors.at(source), 100.0 * counts.second / counts.first};
  return unseen;
}

}  // namespace

double weighted_quantile(std::vector<std::pair<double, double>> values, double fraction) {
  std::ranges::sort(values);
  double all = 0, below = 0;
  for (const auto& [value, weight] : values) all += weight;
  for (const auto& [value, weight] : values) {
    below += weight;
    if (below >= fraction * all) return value;
  }
  return 0;
}

std::optional<ResidualTable> fit_residuals(const RefitResult& fitted, double pair_spread) {
  ResidualTable table;
  table.pair_spread = pair_spread;
  const Widening& w = table.widening = widening_of(fitted.runs);
  const Evidence dense(fitted.runs, false), experts(fitted.runs, true);
  if (dense.runs().empty() && experts.runs().empty()) return {};
  for (const Evidence* evidence : {&dense, &experts})
    table.kinds[evidence == &experts ? 1 : 0] = counted(*evidence);
  const costmodel::ErrorBand unknown;
  const Band widest{std::log(unknown.low), std::log(unknown.high)};
  std::map<std::string, Band> of_dense{{"", band(dense, w, widest, {})}};
  for (const auto& source : experts.sources()) of_dense[source] = band(dense, w, widest, {source});
  set_bands(dense, w, of_dense[""], table.kinds[0]);
  set_bands(experts, w, band(experts, w, of_dense[""], {}), table.kinds[1]);
  Held held;
  judge(dense, w, {{"", widest}}, table.kinds[0], held);
  judge(experts, w, of_dense, table.kinds[1], held);
  table.unseen = unseen_of(fitted, held);
  return table;
}

}  // namespace planner
