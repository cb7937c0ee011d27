#include "planner/accuracy/runs_known.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <set>
#include <utility>

#include "costmodel/base/parallel_for.hpp"
#include "planner/accuracy/residual_fit.hpp"

namespace planner {

namespace {

constexpr int draws = 200;
constexpr std::size_t most_others = 24;  // of a draw that are looked at

using Sites = std::map<std::pair<std::string, std::string>, std::vector<const SourceRun*>>;

Sites sites_of(const std::vector<SourceRun>& runs) {
  Sites sites;
  for (const SourceRun& run : runs) sites[{run.source, run.site}].push_back(&run);
  return sites;
}

std::vector<SiteRuns> without(const Sites& sites, const std::string& source) {
  std::vector<SiteRuns> others;
  for (const auto& [name, runs] : sites) {
    if (name.first == source) continue;
    others.emplace_back();
    for (const SourceRun* run : runs) others.back().push_back(run->run);
  }
  return others;
}

// A run that was not drawn: its residual, and what the drawn ones say of it.
struct Other {
  const SourceRun* run;
  double weight;  // of all draws of a site: as many as the site has runs
  double time;    // the logarithm of the site's factor, 0 if refused
  double parts;
  SiteBand band;  // not stretched
  double residual() const { return run->run.residual; }
  // How many times as far as the band's side the residual lies.
  double above() const { return (residual() - band.middle) / (band.high - band.middle); }
  double below() const { return (residual() - band.middle) / (band.low - band.middle); }
};

struct Priors {
  SitePrior time, parts;
};

// The first `known` of a random order of 0 ... count-1, and some of the rest.
struct Draw {
  std::vector<std::size_t> known, others;
};

Draw draw_of(std::size_t count, std::size_t known, std::mt19937_64& random) {
  std::vector<std::size_t> order(count);
  for (std::size_t i = 0; i < count; ++i) order[i] = i;
  const std::size_t wanted = std::min(count, known + most_others);
  for (std::size_t i = 0; i < wanted; ++i) std::swap(order[i], order[i + random() % (count - i)]);
  const auto at = [&](std::size_t i) { return order.begin() + static_cast<std::ptrdiff_t>(i); };
  return {{at(0), at(known)}, {at(known), at(wanted)}};
}

void draw_site(const std::vector<const SourceRun*>& runs, std::size_t known, const Priors& priors,
               std::vector<Other>& others) {
  if (runs.size() <= known) return;
  std::mt19937_64 random(0);
  for (int i = 0; i < draws; ++i) {
    const Draw draw = draw_of(runs.size(), known, random);
    SiteRuns drawn;
    for (const std::size_t k : draw.known) drawn.push_back(runs[k]->run);
    const SiteFit time = fit_site(priors.time, drawn);
    const SitePosterior parts(priors.parts, drawn);
    const double weight =
        static_cast<double>(runs.size()) / (draws * static_cast<double>(draw.others.size()));
    for (const std::size_t k : draw.others) {
      others.push_back({runs[k], weight, time.factor, parts.mean(runs[k]->run.shares), time.next});
    }
  }
}

double weight_of(const std::vector<Other>& others) {
  double sum = 0;
  for (const Other& other : others) sum += other.weight;
  return sum;
}

using BySource = std::map<std::string, std::vector<Other>>;

// Sets the stretch by which nine in ten of the runs of all sources but `without` lie inside, as
// many missed on either side. A source weighs as the square root of its runs.
void set_stretch(const BySource& sources, const std::string& without, SitePrior& prior) {
  std::vector<std::pair<double, double>> above, below;
  for (const auto& [name, others] : sources) {
    if (name == without || others.empty()) continue;
    const double source = std::sqrt(weight_of(others));
    for (const Other& other : others) {
      above.emplace_back(other.above(), other.weight / source);
      below.emplace_back(other.below(), other.weight / source);
    }
  }
  if (above.empty()) return;
  prior.stretch_high = weighted_quantile(std::move(above), 0.95);
  prior.stretch_low = weighted_quantile(std::move(below), 0.95);
}

KnownFigures figures_of(const std::vector<Other>& others, const SitePrior& prior) {
  KnownFigures f;
  std::set<const SourceRun*> runs;
  const double all = weight_of(others);
  for (const Other& other : others) {
    const double share = 100 * other.weight / all, r = other.residual();
    runs.insert(other.run);
    f.none += share * relative_error_of(r);
    f.time += share * relative_error_of(r - other.time);
    f.parts += share * relative_error_of(r - other.parts);
    const bool inside = other.above() <= prior.stretch_high && other.below() <= prior.stretch_low;
    f.covered += inside ? share : 0;
    f.usual += other.run->usual_low <= r && r <= other.run->usual_high ? share : 0;
    const double width = prior.stretch_high * (other.band.high - other.band.middle) +
                         prior.stretch_low * (other.band.middle - other.band.low);
    f.width += share / 100 * width;
    f.usual_width += share / 100 * (other.run->usual_high - other.run->usual_low);
  }
  f.runs = static_cast<int>(runs.size());
  return f;
}

constexpr std::array<double KnownFigures::*, 7> averaged{
    &KnownFigures::none,  &KnownFigures::time,  &KnownFigures::parts,      &KnownFigures::covered,
    &KnownFigures::usual, &KnownFigures::width, &KnownFigures::usual_width};

// The priors without each source; "": of all.
std::map<std::string, Priors> priors_of(const Sites& sites, int threads) {
  const auto all = without(sites, "");
  const Priors of_all{fit_site_prior(all, first_site_prior(1)),
                      fit_site_prior(all, first_site_prior(most_site_constants))};
  std::map<std::string, Priors> priors{{"", of_all}};
  for (const auto& [name, runs] : sites) priors[name.first] = of_all;
  std::vector<std::pair<const std::string, Priors>*> each;
  for (auto& one : priors)
    if (!one.first.empty()) each.push_back(&one);
  costmodel::share_out(each.size(), threads, [&](std::size_t i) {
    const auto others = without(sites, each[i]->first);
    each[i]->second = {fit_site_prior(others, of_all.time), fit_site_prior(others, of_all.parts)};
  });
  return priors;
}

BySource drawn_by_source(const Sites& sites, std::size_t known,
                         const std::map<std::string, Priors>& priors, int threads) {
  BySource drawn;
  for (const auto& [name, runs] : sites) drawn[name.first];
  std::vector<std::pair<const std::string, std::vector<Other>>*> each;
  for (auto& one : drawn) each.push_back(&one);
  costmodel::share_out(each.size(), threads, [&](std::size_t i) {
    for (const auto& [name, runs] : sites) {
      if (name.first != each[i]->first) continue;
      draw_site(runs, known, priors.at(name.first), each[i]->second);
    }
  });
  return drawn;
}

void add_mean(RunsKnown& result) {
  const auto count = static_cast<double>(result.by_source.size());
  for (const auto& [source, f] : result.by_source) {
    for (const auto figure : averaged) result.mean.*figure += f.*figure / count;
    result.mean.runs += f.runs;
    result.better += f.time < f.none ? 1 : 0;
  }
}

}  // namespace

std::array<double, most_site_constants> site_shares(const costmodel::Breakdown& b) {
  const double all = b.total().value;
  if (!(all > 0)) return {1};
  const double within = (b.tp_comm + b.cp_comm + b.ep_comm).value;
  const double stage = within + (b.compute + b.recompute).value;
  const double waits = (b.bubble + b.imbalance).value;
  return {1, within * (stage > 0 ? 1 + waits / stage : 1) / all,
          (b.pp_comm + b.dp_comm).value / all, (b.optimizer + b.other).value / all};
}

std::vector<SourceRun> source_runs(const std::vector<ValidationRow>& rows,
                                   const RefitResult& fitted) {
  std::map<std::pair<std::string, std::string>, double> errors;
  for (const FittedRun& run : fitted.runs)
    errors[{run.source, run.id}] = run.error(FittedTo::other_sources);
  std::vector<SourceRun> runs;
  for (const ValidationRow& row : rows) {
    if (!row.predicted_time() || !row.interval || !row.breakdown) continue;
    const auto at = errors.find({row.source, row.id});
    if (at == errors.end() || std::isnan(at->second)) continue;
    const costmodel::RunTraits& traits = row.facts.traits;
    runs.push_back({row.source,
                    traits.device + " " + traits.stack,
                    {-at->second, site_shares(*row.breakdown)},
                    std::log(row.interval->low.value / row.predicted),
                    std::log(row.interval->high.value / row.predicted)});
  }
  return runs;
}

RunsKnown runs_known(const std::vector<SourceRun>& runs, int known, int threads) {
  RunsKnown result;
  result.known = known;
  const Sites sites = sites_of(runs);
  auto priors = priors_of(sites, threads);
  const BySource drawn = drawn_by_source(sites, static_cast<std::size_t>(known), priors, threads);
  for (const auto& [source, others] : drawn) {
    SitePrior& prior = priors.at(source).time;
    set_stretch(drawn, source, prior);
    if (others.empty()) {
      result.small.push_back(source);
    } else {
      result.by_source[source] = figures_of(others, prior);
    }
  }
  add_mean(result);
  result.prior = priors.at("").time;
  result.parts = priors.at("").parts;
  set_stretch(drawn, "", result.prior);
  return result;
}

costmodel::SiteSpread site_spread(const RunsKnown& r) {
  return {static_cast<int>(r.by_source.size()),
          r.prior.spreads.front(),
          r.prior.noise,
          r.prior.noise_spread,
          r.prior.stretch_low,
          r.prior.stretch_high};
}

SitePrior site_prior(const costmodel::SiteSpread& kept) {
  return {{kept.time}, kept.noise, kept.noise_spread, kept.low, kept.high};
}

}  // namespace planner
