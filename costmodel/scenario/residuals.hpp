// Errors of predictions of published runs, the 90 % interval that they give and the chance that a
// plan fits: the table of configs/residuals.yaml, written by `shardplan validate
// --write-residuals`.
//
// A residual is log(measured / predicted), predicted by constants that were fitted without the
// run's source. Dense models and mixtures of experts have percentiles of their own. What no
// published run shares (software, device, model family, mechanism; more devices, a larger model)
// makes the interval wider, each by the factor by which leaving out all runs of a device, a family
// ... widens residuals.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "costmodel/plan/error_band.hpp"
#include "costmodel/plan/peak_errors.hpp"
#include "costmodel/scenario/run_traits.hpp"

namespace costmodel {

struct ConfigPath;
struct Value;

struct RunCount {
  int runs = 0, sources = 0;
};

// 5th and 95th percentile for the next source, of a run all of whose traits were measured.
struct Percentiles {
  RunCount count;
  double low = 0, high = 0;
  double covered = 0;  // per cent of runs inside, by a table without their source
};

// Residuals of dense models, or of mixtures of experts.
struct KindResiduals : Percentiles {
  std::map<std::string, Percentiles> lineages;  // of stacks of one code, if many sources ran them
  double most_devices = 0, most_parameters = 0;
  std::map<Trait, RunCount> traits;
  std::map<std::pair<std::string, std::string>, int> runs;  // of a stack on a device
};

// Factors on the logarithmic width.
struct Widening {
  double stack = 1, device = 1;  // never measured
  double model = 1;              // a family or a mechanism never measured
  double doubling = 1;           // each doubling of devices or parameters beyond the most measured
};

// Mean absolute errors in per cent; 0 where there is no such run.
struct MeanErrors {
  double sources = 0;  // mean over sources
  double dense = 0;    // of them, runs of dense models only
  double experts = 0, experts_by_run = 0;
};

// Errors of predictions by constants fitted without a run's source, model family, device, stack.
struct UnseenErrors {
  MeanErrors in_sample;  // by the constants of configs/
  MeanErrors source, family, device, stack;
  struct Source {
    double error = 0, covered = 0;  // left out: mean absolute error and runs inside, per cent
  };
  std::map<std::string, Source> by_source;
};

// How far runs of one source on one device by one stack are off together, and each by itself:
// standard deviations of log(measured / predicted), see planner/accuracy/site_model.hpp.
struct SiteSpread {
  int sources = 0;           // that they were estimated on
  double time = 0;           // of the site's common part
  double noise = 0;          // of a run: median over sites
  double noise_spread = 0;   // of its logarithm
  double low = 1, high = 1;  // factors on the two sides of the interval that these give
};

// Residuals of peaks of memory, log(measured / predicted): a Student t distribution of 3 degrees of
// freedom for all, and for each stack with a published peak.
struct PeakResiduals {
  struct Spread {
    RunCount count;
    double middle = 0, scale = 0;  // the median, and the scale on the logarithm
  };
  Spread all;
  std::map<std::string, Spread> stacks;  // each drawn towards `all`
  double unmeasured = 1;                 // factor on the scale for a stack that is not among them
};

struct ResidualTable {
  std::array<KindResiduals, 2> kinds;  // dense, experts
  Widening widening;
  double pair_spread = 0;
  std::optional<SiteSpread> sites;
  std::optional<PeakResiduals> peaks;
  UnseenErrors unseen;
  const KindResiduals& of(bool experts) const { return kinds[experts ? 1 : 0]; }
};

// How much wider than that of a run with measured traits. `sources`: how many sources measured a
// trait; one source alone widens by the square root of what none does.
double width_of(const Widening& widening, const RunTraits& traits,
                const std::function<int(const Trait&)>& sources, double most_devices,
                double most_parameters);

ErrorBand band_of(const ResidualTable& table, const RunTraits& traits);

// Throws ConfigError.
ResidualTable read_residuals(const Value& root);
std::string to_yaml(const ResidualTable& table);

// The table of the first residuals.yaml in the directories of `path`; null without one, or when it
// is no use.
const ResidualTable* find_residuals(const ConfigPath& path);

// The band by that table. A missing or unreadable table is not an error: the band is the default
// one and its basis states the reason.
ErrorBand find_band(const ConfigPath& path, const RunTraits& traits);

// Of a stack by its name.
PeakErrors peak_errors_of(const PeakResiduals& peaks, const std::string& stack);

// By the same table, and likewise without it.
PeakErrors find_peak_errors(const ConfigPath& path, const std::string& stack);

// P(plan a is faster than plan b), given their predicted times.
double probability_faster(double a, double b, double pair_spread);

}  // namespace costmodel
