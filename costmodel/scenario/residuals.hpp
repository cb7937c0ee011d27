// Residuals of published runs: configs/residuals.yaml, written by `shardplan validate
// --write-residuals`, and the resulting 90 % interval for a stack on a device.
//
// A residual is log(measured / predicted). A kind is a (stack, device) pair. A kind has few
// residuals, so its mean and spread are shrunk towards those of all kinds, by the conjugate prior
// of a normal distribution (Gelman et al. 2013, Bayesian Data Analysis, section 3.3, kappa_0 = nu_0
// = k).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "costmodel/plan/error_band.hpp"

namespace costmodel {

struct ConfigPath;
struct Value;

// Statistics of the residuals of a group of runs.
struct Residuals {
  int runs = 0;
  int sources = 0;
  double mean = 0;
  double spread = 0;                               // robust standard deviation
  std::optional<std::pair<double, double>> range;  // 5th and 95th percentile; many runs only
};

struct ResidualTable {
  Residuals all;       // mean of means and of spreads; every (source, kind) counts equally
  double between = 0;  // spread of the means over (source, kind) pairs
  double pair_spread = 0;
  std::map<std::string, Residuals> stacks;
  std::map<std::string, Residuals> devices;
  std::map<std::pair<std::string, std::string>, Residuals> kinds;  // stack, device
};

// With at least this many runs, a kind's interval is the range of its own percentiles.
inline constexpr int many_runs = 40;

// The band of a prediction: from its kind; wider when only the stack or only the device is known;
// widest when neither is.
ErrorBand band_of(const ResidualTable& table, const std::string& stack, const std::string& device);

// Throws ConfigError.
ResidualTable read_residuals(const Value& root);
std::string to_yaml(const ResidualTable& table);

// The band from the first residuals.yaml in the directories of `path`. A missing or unreadable
// table is not an error: the band is the default one and its basis states the reason.
ErrorBand find_band(const ConfigPath& path, const std::string& stack, const std::string& device);

// P(plan a is faster than plan b), given their predicted times.
double probability_faster(double a, double b, double pair_spread);

}  // namespace costmodel
