// Fits constants of devices and stacks to measured runs, with leave-one-source-out
// cross-validation: how well are a source's runs predicted by constants fitted without it?
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "costmodel/config/search_path.hpp"

namespace planner {

// A number in one or several configuration files that is fitted to evidence: a constant of a
// device, a network or a framework version.
struct FittedConstant {
  std::string name;
  std::vector<std::string> files;  // "devices/a100-sxm4-80gb", found like any configuration
  std::vector<double> ratio;       // each file's value relative to the first one's; kept constant
  std::string key;                 // "gemm.efficiency", "tiers.nvlink.efficiency"
  double low = 0, high = 0;        // bounds
  double prior = 0;                // the prior value (data sheet, microbenchmark)
  double spread = 0;               // relative width of the prior; 0: no prior
  std::string from;                // source of the prior
  double value = 0;
  int runs = 0;  // runs whose prediction depends on it
};

// Reads `constants: [{name, in: [...], key, low, high, prior, spread}]`. `value` becomes the
// current value in the first file.
std::vector<FittedConstant> read_constants(const std::string& file,
                                           const costmodel::ConfigPath& path);

struct RefitResult {
  std::vector<FittedConstant> constants;
  std::map<std::string, double> before, after;  // mean absolute error by source, per cent
  double macro_before = 0, macro_after = 0;
  std::map<std::string, double> left_out;  // each source, with constants fitted to all others
  double macro_left_out = 0;
};

// Minimises the mean over sources of the mean |log(predicted / measured)| of iteration times, plus
// the priors, by pattern search over the logarithms of the constants. Afterwards the loaded
// configurations of `path` hold the fitted values. `left_out` is filled if `cross_validate`;
// `progress` is called with each source before it is left out.
RefitResult refit(const std::vector<std::string>& operands,
                  const std::vector<FittedConstant>& constants, const costmodel::ConfigPath& path,
                  bool cross_validate,
                  const std::function<void(const std::string&)>& progress = {});

std::string to_string(const RefitResult& result);

}  // namespace planner
