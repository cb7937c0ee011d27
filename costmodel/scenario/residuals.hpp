// How far predictions have been from published runs: configs/residuals.yaml, which `shardplan
// validate --write-residuals` writes, and the 90 % interval that follows for a stack on a device.
//
// A residual is log(measured / predicted). The residuals of a kind, a (stack, device), are few, so
// their mean and spread are shrunk towards those of all, as a normal distribution's are by its
// conjugate prior (Gelman et al. 2013, Bayesian Data Analysis, section 3.3, kappa_0 = nu_0 = k).
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

// The residuals of a group of runs.
struct Residuals {
  int runs = 0;
  int sources = 0;
  double mean = 0;
  double spread = 0;                               // robust standard deviation
  std::optional<std::pair<double, double>> range;  // 5th and 95th percentile, of many runs
};

struct ResidualTable {
  Residuals all;       // mean of the means and mean spread: (source, kind)s count equally
  double between = 0;  // spread of the means between (source, kind)s
  double pair_spread = 0;
  std::map<std::string, Residuals> stacks;
  std::map<std::string, Residuals> devices;
  std::map<std::pair<std::string, std::string>, Residuals> kinds;  // stack, device
};

// From this many runs on, a kind's interval is between its own percentiles.
inline constexpr int many_runs = 40;

// The band of a prediction: of the kind; wider where the stack, or the device, is known alone;
// widest where neither is.
ErrorBand band_of(const ResidualTable& table, const std::string& stack, const std::string& device);

// Throws ConfigError.
ResidualTable read_residuals(const Value& root);
std::string to_yaml(const ResidualTable& table);

// The band from the first residuals.yaml of the path's directories. A missing or unreadable table
// is no fault: the band is the default, and its basis says why.
ErrorBand find_band(const ConfigPath& path, const std::string& stack, const std::string& device);

// P(plan a is really faster than plan b), from their predicted times.
double probability_faster(double a, double b, double pair_spread);

}  // namespace costmodel
