// Constants of devices and stacks fitted on measured runs, and leave-one-source-out
// cross-validation: how well runs of a source are predicted by constants that never saw it.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "costmodel/config/search_path.hpp"

namespace planner {

// One number that one or several configuration files share and that evidence decides. A constant
// belongs to a device, a network or a framework version.
struct FittedConstant {
  std::string name;
  std::vector<std::string> files;  // "devices/a100-sxm4-80gb", found like any configuration
  std::vector<double> ratio;       // of each file's value to the first one's, kept
  std::string key;                 // "gemm.efficiency", "tiers.nvlink.efficiency"
  double low = 0, high = 0;        // bounds
  double prior = 0;                // the value from elsewhere (data sheet, microbenchmark)
  double spread = 0;  // how far from it, relatively, is as likely as not; 0: evidence alone
  std::string from;   // where the prior comes from
  double value = 0;
  int runs = 0;  // runs whose prediction it moves
};

// Reads `constants: [{name, in: [...], key, low, high, prior, spread}]`. `value` is what the first
// file holds now.
std::vector<FittedConstant> read_constants(const std::string& file,
                                           const costmodel::ConfigPath& path);

struct RefitResult {
  std::vector<FittedConstant> constants;
  std::map<std::string, double> before, after;  // mean absolute error by source, per cent
  double macro_before = 0, macro_after = 0;
  std::map<std::string, double> left_out;  // each source by constants fitted on all others
  double macro_left_out = 0;
};

// Minimises the mean over sources of the mean |log(predicted / measured)| of iteration times, plus
// the priors, by pattern search over the logarithms of the constants. The loaded configurations of
// `path` hold the fitted values afterwards. `left_out` is filled when `cross_validate`; `progress`
// hears of each source before it is left out.
RefitResult refit(const std::vector<std::string>& operands,
                  const std::vector<FittedConstant>& constants, const costmodel::ConfigPath& path,
                  bool cross_validate,
                  const std::function<void(const std::string&)>& progress = {});

std::string to_string(const RefitResult& result);

}  // namespace planner
